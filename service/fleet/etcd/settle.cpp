// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/etcd/settle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "api/types/text.hpp"
#include "service/fleet/etcd/answers.hpp"

namespace vfmgr::fleet {
namespace {

using std::chrono::milliseconds;

// A member that is paused answers never; the next one may at once.
constexpr milliseconds attempt_max{3'000};
constexpr milliseconds first_wait{50};
constexpr milliseconds longest_wait{2'000};
bool has_act(GuardedTransaction const& guarded, KeyValue const& entry) {
    return entry.value.find(guarded.act) != std::string::npos;
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
        // Never sent before, so nobody can have carried it out.
        if (!lost_ && !has_own(outcome)) return Refused{outcome.found};
        return judge(outcome);
    }

    Maybe judge(Outcome const& outcome) {
        auto const* const main = main_of(outcome);
        if (main && has_act(guarded_, *main)) return Done{main->mod_revision};
        if (creates()) return main ? as_created(*main, outcome) : Refused{outcome.found};
        auto const revision = guard_of(guarded_)->number;
        // Unbroken: another comparison failed.
        if (main && main->mod_revision <= revision) return Refused{outcome.found};
        return first_write_after(revision, outcome);
    }

    // Others have written the key since, possibly over ours. The first to write it after the
    // revision that is compared is the only one whose comparison held.
    Maybe first_write_after(Revision revision, Outcome const& outcome) {
        auto const history = etcd_.watch(
            {.key = guarded_.key, .match = Match::key, .revision = revision + 1}, attempt_ends());
        if (!history) return unread(history.error());
        auto const batch = (*history)->next(attempt_ends());
        if (!batch) return unread(batch.error());
        if (!*batch || (*batch)->changes.empty()) return std::nullopt;
        auto const& first = (*batch)->changes.front();
        if (first.now && has_act(guarded_, *first.now)) return Done{first.revision};
        return Refused{outcome.found};
    }

    // The same for a key that is created: who created it is in its first version.
    Maybe as_created(KeyValue const& main, Outcome const& outcome) {
        auto const created =
            etcd_.range({.key = guarded_.key, .revision = main.create_revision}, attempt_ends());
        if (!created) return unread(created.error());
        if (std::ranges::any_of(created->entries,
                                [&](auto const& one) { return has_act(guarded_, one); }))
            return Done{main.create_revision};
        return Refused{outcome.found};
    }

    // Once it is compacted, it will never be known. Otherwise the next attempt asks again.
    Maybe unread(Error const& error) {
        last_ = error;
        if (is_compacted(error)) return fail(not_known(guarded_, last_));
        return std::nullopt;
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
        auto read = etcd_.range({.key = guarded_.key}, attempt_ends());
        if (!read) {
            lost_ = true;
            return std::nullopt;
        }
        Outcome const outcome{false, read->revision, std::move(read->entries)};
        auto const* const main = main_of(outcome);
        bool const unbroken = (main ? main->mod_revision : 0) == guard_of(guarded_)->number;
        if (!unbroken) return judge(outcome);
        if (lost_) return std::nullopt;
        return fail(last_);
    }

    [[nodiscard]] KeyValue const* main_of(Outcome const& outcome) const {
        auto const found = std::ranges::find(outcome.found, guarded_.key, &KeyValue::key);
        return found == outcome.found.end() ? nullptr : &*found;
    }
    [[nodiscard]] bool has_own(Outcome const& outcome) const {
        auto const* const main = main_of(outcome);
        return main && has_act(guarded_, *main);
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
