"""The working cache: leases, slots, budgets and answers that the processes of a run share."""

import subprocess
import sys
from pathlib import Path

from running import Clock

from pytest_llmeval.judges import Budget
from pytest_llmeval.judges._coordination import LONGEST_S, Coordination
from pytest_llmeval.judges._processes import process_name

DAY_S = 86_400.0
_NAME = "from pytest_llmeval.judges._processes import process_name; print(process_name())"


def test_one_owner_at_a_time_has_a_lease(shared: Coordination) -> None:
    assert shared.lease("key", "a", 30)
    assert not shared.lease("key", "b", 30)
    assert shared.lease("other", "b", 30)
    shared.release("key", "b")
    assert not shared.lease("key", "b", 30)
    shared.release("key", "a")
    assert shared.lease("key", "b", 30)


def test_a_lease_ends_by_itself_and_its_owner_can_put_that_off(shared: Coordination, clock: Clock) -> None:
    shared.lease("asked again", "a", 30)
    shared.lease("renewed", "a", 30)
    shared.lease("not renewed", "b", 30)
    clock.now += 20
    assert shared.lease("asked again", "a", 30)
    shared.renew("a", 30)
    clock.now += 20
    assert [shared.lease(key, "c", 30) for key in ("asked again", "renewed", "not renewed")] == [False, False, True]


def test_what_a_dead_owner_held_ends_at_once_and_its_calls_count_as_spent(shared: Coordination) -> None:
    for owner in ("dead", "alive"):
        assert shared.lease(f"of {owner}", owner, 30)
        assert shared.take_slots("run", owner, 2, 30)
        assert shared.reserve("run", Budget(calls=3), owner).granted
    shared.end("dead")
    assert [shared.lease(f"of {owner}", "heir", 30) for owner in ("dead", "alive")] == [True, False]
    assert [shared.take_slots("run", "heir", 2, 30) for _ in range(2)] == [[0], []]
    assert shared.reserve("run", Budget(calls=1), "heir").exhausted


def test_a_lease_that_must_not_be_inherited_stays_orphaned(shared: Coordination, clock: Clock) -> None:
    assert shared.lease("key", "dead", 30, inherit=False)
    assert not shared.is_orphaned("key")
    clock.now += 30
    assert not shared.lease("key", "heir", 30, inherit=False)
    assert shared.is_orphaned("key")
    assert not shared.is_orphaned("other")
    assert shared.lease("key", "heir", 30)
    assert not shared.is_orphaned("key")


def test_a_lease_that_its_owner_lets_expire_is_an_orphan(shared: Coordination) -> None:
    assert shared.lease("key", "owner", 30, inherit=False)
    shared.expire("key", "another")
    assert not shared.is_orphaned("key")
    shared.expire("key", "owner")
    assert shared.is_orphaned("key")
    assert not shared.lease("key", "heir", 30, inherit=False)
    assert shared.lease("key", "owner", 30, inherit=False)


def test_what_has_expired_is_not_renewed(shared: Coordination, clock: Clock) -> None:
    shared.lease("key", "a", 30)
    clock.now += 30
    shared.renew("a", 30)
    assert shared.lease("key", "b", 30)


def test_slots_are_limited_over_all_owners_of_a_run(shared: Coordination) -> None:
    assert [shared.take_slots("run", owner, 2, 30) for owner in "aba"] == [[0], [1], []]
    assert shared.take_slots("other run", "c", 1, 30) == [0]
    shared.free_slots("run", [0], "b")
    assert shared.take_slots("run", "c", 2, 30) == []
    shared.free_slots("run", [0], "a")
    assert shared.take_slots("run", "c", 2, 30) == [0]


def test_several_slots_are_taken_and_given_back_at_once_as_far_as_there_are_any(shared: Coordination) -> None:
    assert shared.take_slots("run", "a", 5, 30, 2) == [0, 1]
    assert shared.take_slots("run", "b", 5, 30, 9) == [2, 3, 4]
    shared.free_slots("run", [0, 1, 2], "a")
    assert shared.take_slots("run", "c", 5, 30, 9) == [0, 1]


def test_a_lowered_limit_counts_the_slots_that_are_taken(shared: Coordination) -> None:
    slots = [shared.take_slots("run", "a", 4, 30) for _ in range(4)]
    shared.free_slots("run", [0], "a")
    assert slots == [[0], [1], [2], [3]]
    assert shared.take_slots("run", "a", 2, 30) == []
    assert shared.take_slots("run", "a", 0, 30) == []


def test_slots_of_a_dead_owner_become_free(shared: Coordination, clock: Clock) -> None:
    shared.take_slots("run", "dead", 2, 30)
    shared.take_slots("run", "alive", 2, 30)
    clock.now += 20
    shared.renew("alive", 30)
    clock.now += 20
    assert shared.take_slots("run", "new", 2, 30) == [0]
    assert shared.take_slots("run", "new", 2, 30) == []
    shared.free_slots("run", [0], "dead")
    assert shared.take_slots("run", "newer", 2, 30) == []


def test_the_limit_halves_once_a_second_and_climbs_back(shared: Coordination, clock: Clock) -> None:
    assert shared.limit("run", 16) == 16
    assert shared.lower_limit("run", 16) == 8
    assert shared.lower_limit("run", 16) == 8
    clock.now += 1
    assert shared.lower_limit("run", 16) == 4
    assert shared.limit("run", 16) == 4
    assert shared.limit("other run", 16) == 16
    assert [shared.raise_limit("run", 6) for _ in range(3)] == [5, 6, 6]
    assert shared.limit("run", 16) == 6


def test_the_limit_never_falls_below_one_and_is_never_above_what_is_configured(
    shared: Coordination, clock: Clock
) -> None:
    for _ in range(5):
        clock.now += 1
        lowest = shared.lower_limit("run", 4)
    assert lowest == 1
    assert shared.raise_limit("untouched", 4) == 4
    assert shared.limit("run", 0) == 0


def test_a_budget_is_shared_and_what_is_under_way_counts(shared: Coordination) -> None:
    budget = Budget(calls=2)
    first = shared.reserve("run", budget, "a")
    second = shared.reserve("run", budget, "b")
    assert first.granted
    assert second.granted
    refused = shared.reserve("run", budget, "a")
    assert (refused.granted, refused.exhausted) == (False, False)
    assert shared.reserve("other run", budget, "a").granted
    shared.settle(first)
    shared.settle(second)
    spent = shared.reserve("run", budget, "a")
    assert (spent.granted, spent.exhausted) == (False, True)


def test_what_was_reserved_and_not_used_can_be_used_by_others(shared: Coordination) -> None:
    budget = Budget(tokens=100)
    first = shared.reserve("run", budget, "a", tokens=80)
    assert not shared.reserve("run", budget, "b", tokens=30).granted
    shared.settle(first, tokens=60)
    assert shared.reserve("run", budget, "b", tokens=40).granted
    assert shared.reserve("run", budget, "b", tokens=41).exhausted


def test_what_no_budget_can_hold_is_exhausted_at_once(shared: Coordination) -> None:
    assert shared.reserve("run", Budget(tokens=100), "a", tokens=101).exhausted


def test_where_the_use_is_not_known_all_that_was_reserved_counts(shared: Coordination) -> None:
    budget = Budget(tokens=100, usd=1.0)
    shared.settle(shared.reserve("run", budget, "a", tokens=60, usd=0.6))
    assert shared.reserve("run", budget, "a", tokens=41).exhausted
    assert shared.reserve("run", budget, "a", usd=0.41).exhausted
    assert shared.reserve("run", budget, "a", tokens=40, usd=0.4).granted


def test_money_adds_up_without_error(shared: Coordination) -> None:
    budget = Budget(usd=0.3)
    assert [shared.reserve("run", budget, "a", usd=0.1).granted for _ in range(4)] == [True, True, True, False]


def test_a_reservation_is_settled_once(shared: Coordination) -> None:
    budget = Budget(tokens=100)
    first = shared.reserve("run", budget, "a", tokens=50)
    shared.settle(first, tokens=50)
    second = shared.reserve("run", budget, "a", tokens=50)
    shared.settle(first, tokens=50)
    assert second.granted
    shared.settle(second, tokens=10)
    assert shared.reserve("run", budget, "a", tokens=40).granted


def test_a_reservation_of_a_dead_owner_counts_as_spent(shared: Coordination, clock: Clock) -> None:
    budget = Budget(calls=2)
    shared.reserve("run", budget, "dead", ttl=30)
    alive = shared.reserve("run", budget, "alive", ttl=30)
    clock.now += 20
    shared.renew("alive", 30)
    clock.now += 20
    waiting = shared.reserve("run", budget, "new")
    assert (waiting.granted, waiting.exhausted) == (False, False)
    shared.settle(alive)
    assert shared.reserve("run", budget, "new").exhausted


def test_answers_of_the_target_are_shared_within_a_run(shared: Coordination) -> None:
    shared.put_answer("run", "key", '"half \ud800"')
    assert shared.get_answer("run", "key") == '"half \ud800"'
    assert shared.get_answer("other run", "key") is None
    shared.put_answer("run", "key", "1")
    assert shared.get_answer("run", "key") == "1"


def test_a_forgotten_run_leaves_what_others_share(shared: Coordination) -> None:
    for run in ("run", "other"):
        shared.put_answer(run, "key", "1")
        shared.settle(shared.reserve(run, Budget(calls=1), "a"))
        shared.lower_limit(run, 16)
        shared.take_slots(run, "a", 1, 30)
        shared.lease(f"asked in {run}", f"{run} gw0", 30)
    shared.forget_run("run")
    assert shared.get_answer("run", "key") is None
    assert shared.reserve("run", Budget(calls=1), "a").granted
    assert shared.limit("run", 16) == 16
    assert shared.take_slots("run", "a", 1, 30) == [0]
    assert shared.lease("asked in run", "next", 30)
    assert shared.get_answer("other", "key") == "1"
    assert shared.reserve("other", Budget(calls=1), "a").exhausted
    assert shared.limit("other", 16) == 8
    assert shared.take_slots("other", "a", 1, 30) == []
    assert not shared.lease("asked in other", "next", 30)


def test_what_runs_left_behind_is_forgotten_after_a_day(shared: Coordination, path: Path, clock: Clock) -> None:
    shared.put_answer("old", "key", "1")
    shared.lower_limit("old", 16)
    shared.reserve("old", Budget(calls=1), "a", ttl=30)
    clock.now += DAY_S
    shared.put_answer("new", "key", "2")
    shared.close()
    clock.now += 100
    with Coordination(path, clock=clock, ticks=clock) as again:
        assert again.get_answer("old", "key") is None
        assert again.limit("old", 16) == 16
        assert again.reserve("old", Budget(calls=1), "a").granted
        assert again.get_answer("new", "key") == "2"


def test_what_a_killed_process_held_is_free_at_once(shared: Coordination) -> None:
    owner = subprocess.check_output([sys.executable, "-c", _NAME], text=True).strip()
    assert shared.lease("key", f"run gw0 {owner}", 30)
    assert shared.lease("key of a process that lives", f"run gw0 {process_name()}", 30)
    assert shared.lease("key", "next", 30)
    assert not shared.lease("key of a process that lives", "next", 30)


def test_the_main_process_ends_what_a_worker_held_whatever_its_process_is_called(shared: Coordination) -> None:
    assert shared.lease("key", "run gw1 12:34:here", 30)
    assert shared.lease("other", "run gw10 12:34:here", 30)
    shared.end("run gw1")
    assert shared.lease("key", "next", 30)
    assert not shared.lease("other", "next", 30)


def test_a_clock_set_back_an_hour_holds_no_lease_for_an_hour(path: Path, clock: Clock) -> None:
    running = Clock()
    with Coordination(path, clock=clock, ticks=running) as shared:
        shared.lease("key", "killed", 30)
        clock.now -= 3600
        running.now += 31
        assert shared.lease("key", "next", 30)


def test_a_lease_of_another_boot_is_free(shared: Coordination, clock: Clock) -> None:
    shared.lease("key", "before the restart", 30)
    clock.now -= 3600
    assert shared.lease("key", "next", 30)
    assert not shared.lease("key", "third", 30)


def test_no_lease_is_held_longer_than_the_longest(shared: Coordination, clock: Clock) -> None:
    shared.lease("key", "a", 1e9)
    assert not shared.lease("key", "b", 30)
    clock.now += LONGEST_S
    assert shared.lease("key", "b", 30)
