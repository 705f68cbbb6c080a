"""Incidents of something that was held: on no core in particular, whatever runs on the cores."""

from collections.abc import Sequence

from necroscope.analysis.episodes import Episode, EpisodeKind, touches


def held_clusters(episodes: Sequence[Episode]) -> list[list[Episode]]:
    """Each thing that tasks stood behind, with who was late because of it; and who was late because
    its process was stopped.
    """
    late = [one for one in episodes if one.kind is EpisodeKind.TASK_LATE and one.cpu is None]
    held = [
        [one, *(e for e in late if e.subject == one.subject and touches(e.span, one.span))]
        for one in episodes
        if one.kind is EpisodeKind.TASK_BLOCKED
    ]
    known = {id(episode) for own in held for episode in own}
    return [*held, *([episode] for episode in late if id(episode) not in known)]


def is_of_what_is_held(episode: Episode) -> bool:
    """Its subject is what was waited for."""
    is_late = episode.kind is EpisodeKind.TASK_LATE and episode.cpu is None
    return episode.kind is EpisodeKind.TASK_BLOCKED or is_late
