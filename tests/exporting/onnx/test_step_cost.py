"""A step computes one position: what came before is kept, not done again."""

import json
import math

import numpy as np
import onnxruntime
import pytest

PRODUCTS = {"Gemm", "FusedGemm", "MatMul", "FusedMatMul"}


def products_of(path, length, tmp_path):
    """How many numbers all products with weights put out in one run."""
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    settings.enable_profiling = True
    settings.profile_file_prefix = str(tmp_path / "profile")
    session = onnxruntime.InferenceSession(
        path, settings, ["CPUExecutionProvider"]
    )
    feed = {
        "source_ids": np.array([[5, 7, 11, 13, 2]], "int32"),
        "max_length": np.array(length, "int32"),
        # eos is never allowed.
        "min_length": np.array(length + 1, "int32"),
    }
    (lengths,) = session.run(["lengths"], feed)
    assert lengths.max() == length
    with open(session.end_profiling(), encoding="utf-8") as stream:
        events = json.load(stream)
    count = 0
    for event in events:
        facts = event.get("args", {})
        if facts.get("op_name") in PRODUCTS and "output_type_shape" in facts:
            ((shape,),) = (each.values() for each in facts["output_type_shape"])
            if len(shape) == 2:  # Those of attention have heads.
                count += math.prod(shape)
    return count


@pytest.mark.parametrize("name", ["greedy", "beam"])
def test_every_step_costs_the_same_but_for_what_attention_reads(
    name, exported, tmp_path
):
    path = exported["onnx"] / f"{name}.onnx"
    counts = [products_of(path, length, tmp_path) for length in (5, 9, 13)]
    one, other = np.diff(counts)
    assert one == other > 0
