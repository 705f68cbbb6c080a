"""What a program said last: real lines of torch 2.13 with gloo, of Slurm, and of hostile users."""

from necroscope.sources.jobs.last_words import TAIL_BYTES, last_words

GLOO = b"""\
[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 11, in <module>
[rank0]:     dist.all_reduce(a)
[rank0]:     ^^^^^^^^^^^^^^^^^^
[rank0]: RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] \
Connection closed by peer [10.77.0.2]:17087. This is typically caused by a remote worker crashing.
"""


def test_the_exception_that_ended_a_rank_is_reported_with_the_peer_it_names() -> None:
    words = last_words(b"step 1\nstep 2\n" + GLOO)
    assert words is not None
    assert words.text.startswith("RuntimeError: [/__w/pytorch")
    assert words.peer == "10.77.0.2"


def test_of_several_tracebacks_the_last_counts() -> None:
    first = b"Traceback (most recent call last):\n  File 'a'\nValueError: handled\n"
    words = last_words(first + b"going on\n" + GLOO)
    assert words is not None
    assert "handled" not in words.text


def test_the_scheduler_is_heard_over_the_traceback_it_caused() -> None:
    slurm = (
        b"slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-11-18T06:00:00 DUE TO PREEMPTION"
    )
    words = last_words(slurm + b" ***\n" + GLOO)
    assert words is not None
    assert "DUE TO PREEMPTION" in words.text


def test_a_line_that_containerd_wrote_is_read_without_its_stamp() -> None:
    stamp = b"2026-11-18T06:00:00.123456789Z stderr F "
    lines = b"Traceback (most recent call last):\n  File 'a'\nKeyError: 'loss'\n"
    words = last_words(b"".join(stamp + line + b"\n" for line in lines.splitlines()))
    assert words is not None
    assert words.text == "KeyError: 'loss'"


def test_other_output_is_not_kept() -> None:
    assert last_words(b"password=hunter2\nloss 0.1\n") is None
    assert last_words(b"") is None


def test_only_the_end_is_read_and_what_is_reported_is_bounded_and_clean() -> None:
    forged = b"Traceback (most recent call last):\nEvil: \x1b[2J" + b"x" * 5000 + b"\n"
    words = last_words(b"\n" * TAIL_BYTES + forged)
    assert words is not None
    assert len(words.text) <= 400
    assert "\x1b" not in words.text


def test_what_an_actor_raised_is_heard_in_the_driver_that_raises_it_again() -> None:
    """Of Ray 2.60, with its colours."""
    text = b"""\
Traceback (most recent call last):
  File "train.py", line 39, in main
    ray.get([actor.step.remote() for actor in actors], timeout=5)
ray.exceptions.RayTaskError(ValueError): \x1b[36mray::Actor.step()\x1b[39m (pid=10807, ip=10.77.0.2)
           ^^^^^^^^^^^^^^^^
  File "train.py", line 24, in step
    raise ValueError("loss is not finite")
ValueError: loss is not finite
"""
    words = last_words(text)
    assert words is not None
    assert words.text == "ValueError: loss is not finite"
    alone = last_words(text.replace(b"ValueError: loss is not finite\n", b""))
    assert alone is not None
    assert alone.text.startswith("ray.exceptions.RayTaskError(ValueError): ")
