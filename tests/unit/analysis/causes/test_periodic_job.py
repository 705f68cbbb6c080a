"""Bursts on the dot, of a program that does nothing in between."""

from tests.drawn_node import drawn_node

from necroscope.analysis.engine import diagnose


def picture(core: str, job: str = "rotate") -> str:
    lines = "\n".join(
        f"    {letter}: user  {job}[{pid}]  /  main, deflate" for letter, pid in zip("abcdefgh", range(900, 908), strict=True)
    )
    other = "    z: user  solver[31]  /  main, multiply"
    return f"core 0:  {core}\n    core 1:  {'.' * len(core)}\n{lines}\n{other}"


def test_bursts_at_a_steady_beat_are_named_with_their_program_and_period() -> None:
    found = diagnose(drawn_node(picture("......aa........bb........cc........dd........ee........ff......"))).incidents
    assert {incident.verdict.cause for incident in found} == {"periodic-job"}
    verdict = found[0].verdict
    assert verdict.culprit is not None
    assert verdict.culprit.comm == "rotate"
    assert "every 10 s" in verdict.summary
    assert "another process each time" in verdict.summary


def test_bursts_at_random_are_not_named() -> None:
    assert not diagnose(drawn_node(picture("..aa...bb............cc....dd..................ee...ff..........."))).incidents


def test_three_bursts_are_too_few() -> None:
    assert not diagnose(drawn_node(picture("......aa........bb........cc......................................"))).incidents


def test_a_steady_beat_of_different_programs_is_not_one_job() -> None:
    drawn = picture("......aa........zz........cc........zz........ee........zz......")
    assert not diagnose(drawn_node(drawn)).incidents


def test_a_burst_with_a_mechanism_is_named_by_it() -> None:
    drawn = (
        picture("......aa........bb........cc........dd........ee........ff......")
        .replace("user  rotate", "system  rotate")
        .replace("main, deflate", "read > ksys_read, vfs_read, seq_read_iter, tcp4_seq_show")
    )
    found = diagnose(drawn_node(drawn)).incidents
    assert found
    assert {incident.verdict.cause for incident in found} == {"proc-net-scan"}
