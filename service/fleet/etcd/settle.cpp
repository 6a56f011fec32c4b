// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/etcd/settle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "api/types/text.hpp"

namespace vfmgr::fleet {
namespace {

using std::chrono::milliseconds;

// A member that is paused answers never; the next one may at once.
constexpr milliseconds attempt_max{3'000};
constexpr milliseconds first_wait{50};
constexpr milliseconds longest_wait{2'000};
// A key that was written more often than this since the act is not followed back further.
constexpr int versions_max = 64;

bool has_act(GuardedTransaction const& guarded, KeyValue const& entry) {
    return entry.key == guarded.key && entry.value.find(guarded.act) != std::string::npos;
}

// The comparison of the main key that its own write ends.
Compare const* guard_of(GuardedTransaction const& guarded) {
    auto const& all = guarded.transaction.compares;
    auto const found = std::ranges::find_if(all, [&](Compare const& one) {
        if (one.key != guarded.key || one.is != Compare::Is::equal) return false;
        return one.on == Compare::On::mod_revision ||
               (one.on == Compare::On::create_revision && one.number == 0);
    });
    return found == all.end() ? nullptr : &*found;
}

Result<void> check_guarded(GuardedTransaction const& guarded) {
    auto const writes_act = std::ranges::any_of(guarded.transaction.writes, [&](Write const& one) {
        auto const* const put = std::get_if<Put>(&one);
        return put && put->key == guarded.key && put->value.find(guarded.act) != std::string::npos;
    });
    if (!guarded.act.empty() && writes_act && guard_of(guarded)) return {};
    return fail(
        Problem::internal,
        fmt::format("a transaction on the key {} could be carried out twice", quoted(guarded.key)),
        "report this with the daemon's log");
}

Error not_known(GuardedTransaction const& guarded, Error const& last) {
    return {Problem::timed_out,
            fmt::format("whether the change of {} was made is not known: etcd gave no answer",
                        quoted(guarded.key)),
            "it is settled once etcd answers: etcdctl endpoint status --cluster", last.causes};
}

class Settling {
  public:
    Settling(Etcd& etcd, GuardedTransaction const& guarded, Timing const& timing, Deadline deadline)
        : etcd_(etcd),
          guarded_(guarded),
          timing_(timing),
          deadline_(deadline),
          transaction_(guarded.transaction),
          lost_(guarded.sent_before) {
        auto& reads = transaction_.otherwise;
        if (std::ranges::find(reads, guarded.key) == reads.end()) reads.push_back(guarded.key);
    }

    [[nodiscard]] Result<Settled> run() {
        for (;;) {
            auto answer = etcd_.commit(transaction_, attempt_ends());
            if (answer && answer->succeeded) return Done{answer->revision};
            if (auto settled = answer ? refused(*answer) : failed(std::move(answer).error()))
                return std::move(*settled);
            auto const now = timing_.clock.steady_now();
            if (now >= deadline_ ||
                !timing_.wait_until(std::min(deadline_, now + backoff_.next())) ||
                timing_.clock.steady_now() >= deadline_)
                return fail(lost_ ? not_known(guarded_, last_) : last_);
        }
    }

  private:
    using Maybe = std::optional<Result<Settled>>;  // absent: send it again

    [[nodiscard]] Deadline attempt_ends() const {
        return std::min(deadline_, timing_.clock.steady_now() + attempt_max);
    }

    Maybe refused(Outcome const& outcome) {
        auto const own = std::ranges::find_if(
            outcome.found, [&](KeyValue const& one) { return has_act(guarded_, one); });
        if (own != outcome.found.end()) return Done{own->mod_revision};
        // Never sent before, so nobody can have carried it out.
        if (!lost_) return Refused{outcome.found};
        auto const main = std::ranges::find(outcome.found, guarded_.key, &KeyValue::key);
        if (main == outcome.found.end()) return gone(outcome);
        return overwritten(outcome, *main);
    }

    // Absent now. Under absent(), the comparison of another key failed. Under unchanged(), somebody
    // has erased it, and possibly our version.
    Maybe gone(Outcome const& outcome) {
        if (creates()) return Refused{outcome.found};
        return fail(not_known(guarded_, last_));
    }

    // Others have written the key since. Whether they wrote over ours is in etcd's history, which
    // is followed back from version to version.
    Maybe overwritten(Outcome const& outcome, KeyValue main) {
        for (int version = 0; version < versions_max; ++version) {
            bool const first = main.mod_revision == main.create_revision;
            if (creates() ? first : main.mod_revision <= guard_of(guarded_)->number)
                return Refused{outcome.found};
            if (first) break;  // it was erased, and possibly our version
            auto before = etcd_.range({.key = guarded_.key, .revision = main.mod_revision - 1},
                                      attempt_ends());
            if (!before) {
                last_ = std::move(before).error();
                // Compacted: it will never be known. Otherwise the next attempt asks again.
                if (last_.problem == Problem::not_found) break;
                return std::nullopt;
            }
            if (before->entries.empty()) break;
            main = std::move(before->entries.front());
            if (has_act(guarded_, main)) return Done{main.mod_revision};
        }
        return fail(not_known(guarded_, last_));
    }
    [[nodiscard]] bool creates() const {
        return guard_of(guarded_)->on == Compare::On::create_revision;
    }

    Maybe failed(Error error) {
        last_ = std::move(error);
        switch (last_.problem) {
            case Problem::timed_out:
                lost_ = true;
                return std::nullopt;
            case Problem::unavailable:
                return std::nullopt;
            case Problem::limit_exceeded:
                return without_space();
            default:
                return fail(lost_ ? not_known(guarded_, last_) : last_);
        }
    }

    // etcd answers "no space" for what it refuses, and for what it carried out with its last space.
    // Either way nothing of this attempt is still under way, so reading tells.
    Maybe without_space() {
        auto const main = etcd_.range({.key = guarded_.key}, attempt_ends());
        if (!main) {
            lost_ = true;
            return std::nullopt;
        }
        if (!main->entries.empty() && has_act(guarded_, main->entries.front()))
            return Done{main->entries.front().mod_revision};
        if (lost_) return std::nullopt;
        return fail(last_);
    }

    Etcd& etcd_;
    GuardedTransaction const& guarded_;
    Timing const& timing_;
    Deadline const deadline_;
    Transaction transaction_;
    bool lost_;  // an attempt may have been carried out, or may still be
    Error last_{};
    Backoff backoff_{first_wait, longest_wait};
};

}  // namespace

Result<Settled> settle(Etcd& etcd, GuardedTransaction const& guarded, Timing const& timing,
                       Deadline deadline) {
    VFMGR_CHECK(check_guarded(guarded));
    return Settling(etcd, guarded, timing, deadline).run();
}

}  // namespace vfmgr::fleet
