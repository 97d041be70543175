"""Programs that run an export without this package; read, never imported."""
