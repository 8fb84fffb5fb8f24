# SPDX-License-Identifier: Apache-2.0
"""The examples in Python, as a newcomer runs them; those of digits are in test_python and test_torch_distributed."""
import world
from test_python import ENV, must_be_clean, python
from test_python_run import python_with_cloudpickle

EXAMPLES = world.REPOSITORY / "examples" / "python"
SMALL = ("--image-size", 32, "--batch-size", 2, "--num-iters", 2, "--num-batches-per-iter", 1, "--num-warmup-batches", 1)


@world.bound(400)
def test_the_language_model_has_the_same_losses_on_any_number_of_ranks():
    python()
    losses = {}
    with world.hosts(2) as here:
        for np, hosts in world.rows((1, ()), (4, ("-H", "host0:2,host1:2")), with_all=((2, ()),)):
            outcome = here.hvdrun("-np", np, *hosts, python(), EXAMPLES / "gpt.py", "--steps", 6, "--width", 32, env=ENV, seconds=80).must(0)
            losses[np] = [float(line.split("loss ")[1].split()[0]) for line in outcome.out.splitlines() if "loss " in line]
            assert len(losses[np]) == 6 and losses[np][-1] < losses[np][0], outcome
            must_be_clean(here)
    for np in losses:  # the forward pass is in bfloat16
        assert all(abs(a - b) < 5e-3 for a, b in zip(losses[1], losses[np])), losses


@world.bound(400)
def test_the_synthetic_benchmark_says_images_a_second_and_the_efficiency():
    python()
    with world.hosts() as here:
        outcome = here.hvdrun("-np", 2, python(), EXAMPLES / "synthetic_benchmark.py", *SMALL, env=ENV, seconds=80).must(0)
        assert outcome.out.count("images/s on 2 ranks") == 2 and "median: " in outcome.out, outcome
        outcome = here.run(python_with_cloudpickle(), EXAMPLES / "synthetic_benchmark.py", "--ranks", "1,2", *SMALL, env=ENV,
                           seconds=120).must(0)
        rows = [line.split() for line in outcome.out.splitlines() if line.endswith("%")]
        assert [row[0] for row in rows] == ["1", "2"] and rows[0][2] == "100%", outcome
        must_be_clean(here)
