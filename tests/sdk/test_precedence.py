"""What nobody waits for lets answers go first, and still gets its turn."""

import threading
import time

from aftercall.background import Precedence


def test_nothing_is_waited_for_where_nobody_waits() -> None:
    """Most of the time."""
    started = time.monotonic()
    Precedence().let_others(60)
    assert time.monotonic() - started < 30


def test_what_lets_others_go_first_goes_on_when_the_last_is_answered() -> None:
    """Each of several counts."""
    answers, gone = Precedence(), threading.Event()

    def learn() -> None:
        answers.let_others(60)
        gone.set()

    with answers:
        with answers:
            learner = threading.Thread(target=learn)
            learner.start()
        assert not gone.wait(0.1)
    assert gone.wait(30)
    learner.join()


def test_it_goes_on_beside_answers_without_a_pause() -> None:
    """Else nothing would be learned."""
    answers = Precedence()
    with answers:
        answers.let_others(0.01)
    assert not answers.waiting
