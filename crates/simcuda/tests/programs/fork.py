"""A forked child cannot use the GPU, and does not write its parent's report."""

import os
import sys

from cuda.bindings import driver

SUCCESS = driver.CUresult.CUDA_SUCCESS
NOT_INITIALIZED = driver.CUresult.CUDA_ERROR_NOT_INITIALIZED


def main():
    assert driver.cuInit(0)[0] == SUCCESS
    child = os.fork()
    if child == 0:
        refused = driver.cuDeviceGetCount()[0] == NOT_INITIALIZED
        # A normal exit, so that handlers run in the child as well.
        sys.exit(0 if refused else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert not os.path.exists(os.environ["PINLANE_SIMCUDA_REPORT"]), "the child wrote the report"
    assert driver.cuDeviceGetCount() == (SUCCESS, 1)


main()
