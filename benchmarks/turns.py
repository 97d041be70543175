"""Engines that are measured in turn, each in a process of its own.

Whatever else the machine does then hits them alike, and none holds the
libraries of another: TensorFlow and PyTorch do not bear each other.
"""

import multiprocessing
import os
import random
import resource
import time

# Threads wait busily for more work, some for a fifth of a second; after such a
# pause they take no time from the engine whose turn it is.
PAUSE = 0.3


class Engines:
    """Processes that each hold one engine.

    Args:
        make: function `(name, *arguments)` that gives the engine, a function;
            both are called in its process.
        names: list of str.
        *arguments: what else `make` gets.
    """

    def __init__(self, make, names, *arguments):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        context = multiprocessing.get_context("spawn")
        self._connections, self._processes = {}, []
        for name in names:
            self._connections[name], end = context.Pipe()
            process = context.Process(
                target=_serve,
                args=(make, name, arguments, end),
                daemon=True,  # If one fails, the others must not go on waiting.
            )
            process.start()
            end.close()  # Or nobody would notice that the process has failed.
            self._processes.append(process)
            self._connections[name].recv()  # Ready.
        self._order = random.Random(0)

    def ask(self, name, *request):
        """Calls an engine and gives what it returns."""
        self._connections[name].send(request)
        return self._connections[name].recv()

    def take_turns(self, turns, *request, warm_up=0):
        """Calls all engines in turn, in an order drawn anew each time.

        Args:
            turns: int.
            *request: what each gets.
            warm_up: int, turns before them that do not count.

        Returns:
            Dict of name to the list of what it returned.
        """
        names = list(self._connections)
        answers = {name: [] for name in names}
        for _ in range(warm_up + turns):
            for name in self._order.sample(names, len(names)):
                time.sleep(PAUSE)
                answers[name].append(self.ask(name, *request))
        return {name: found[warm_up:] for name, found in answers.items()}

    def close(self):
        """Ends all; gives their peak memory in GiB, by name."""
        memory = {}
        for name, connection in self._connections.items():
            connection.send(None)
            memory[name] = connection.recv()
        for process in self._processes:
            process.join()
        return memory


def timed(function, *arguments):
    """Gives what a function returns, and the seconds it took."""
    started = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - started


def _serve(make, name, arguments, connection):
    engine = make(name, *arguments)
    connection.send("ready")
    while (request := connection.recv()) is not None:
        connection.send(engine(*request))
    # Linux counts it in KiB.
    connection.send(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
