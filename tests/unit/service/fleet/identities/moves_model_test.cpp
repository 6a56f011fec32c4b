// SPDX-License-Identifier: Apache-2.0
// Tries every interleaving of a move: at no time two hosts may use an identity.
//
// A replica is what it has read: any state that etcd ever had, however old. So each transaction is
// tried from each earlier snapshot; that is every number of replicas, none of them elected, each as
// stale as it can be, crashed between any two steps, with its answers lost. A push is the document
// of any earlier snapshot; it arrives at any time, again, or never. A host keeps the document that
// it accepted and whether a VM uses the identity, over crashes too.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <iostream>
#include <map>
#include <set>
#include <tuple>

#include "service/fleet/identities/derive.hpp"
#include "tests/unit/service/fleet/identities/fleet_snapshot.hpp"

namespace vfmgr::fleet {
namespace {

Identity const moving{"", MacAddress{{0x52, 0x54, 0, 0, 0, 1}}};

struct ModelHost {
    std::size_t document = 0;  // of history[document]
    bool uses = false;
    auto operator<=>(ModelHost const&) const = default;
};

// What the rules protect from: each alone must let the checker find two users.
enum class Mistake { none, any_answer, claim_at_once, older_documents, taken_while_used };

// Each state of etcd, in order, and which hosts each of them allows to use it.
struct History {
    std::vector<Snapshot> states;
    std::vector<std::vector<bool>> allows;
};

struct World {
    std::size_t history = 0;  // its number
    std::vector<ModelHost> hosts;
    auto operator<=>(World const&) const = default;
};

class Checker {
  public:
    Checker(Snapshot first, std::vector<std::string> hosts, std::size_t changes_max,
            Mistake mistake)
        : names_(std::move(hosts)), changes_max_(changes_max), mistake_(mistake) {
        History begin;
        add_state(begin, std::move(first));
        found({number_of(std::move(begin)), std::vector<ModelHost>(names_.size())});
    }

    // Returns what two hosts did, or empty.
    std::string run() {
        while (!next_.empty()) {
            auto const world = next_.front();
            next_.pop_front();
            if (auto const wrong = wrong_in(world); !wrong.empty()) return wrong;
            act_of_hosts(world);
            auto const read = histories_[world.history].states.size();
            for (std::size_t i = 0; i < read; ++i) act_of_replicas(world, i);
        }
        return {};
    }
    [[nodiscard]] std::size_t states() const { return known_.size(); }
    [[nodiscard]] std::size_t used_after_move() const { return used_after_move_; }

  private:
    using HistoryKey = std::vector<std::tuple<int, std::string, std::uint64_t>>;

    void add_state(History& history, Snapshot state) const {
        std::vector<bool> allows;
        for (auto const& name : names_)
            allows.push_back(may_use(desired_identities(state, name), moving));
        history.allows.push_back(std::move(allows));
        history.states.push_back(std::move(state));
    }
    std::size_t number_of(History history) {
        HistoryKey key;
        for (auto const& state : history.states) {
            auto const* const kept = claim_of(state, moving);
            key.emplace_back(kept ? static_cast<int>(kept->claim.state) : -1,
                             kept ? kept->claim.host : "", kept ? kept->revision : 0);
        }
        auto const [at, added] = numbers_.try_emplace(std::move(key), histories_.size());
        if (added) histories_.push_back(std::move(history));
        return at->second;
    }
    void found(World world) {
        if (known_.insert(world).second) next_.push_back(std::move(world));
    }
    [[nodiscard]] bool may(World const& world, std::size_t host, std::size_t document) const {
        return histories_[world.history].allows[document][host];
    }

    [[nodiscard]] std::string wrong_in(World const& world) {
        std::string users;
        int allowed = 0;
        int using_it = 0;
        for (std::size_t h = 0; h < names_.size(); ++h) {
            bool const has = may(world, h, world.hosts[h].document);
            allowed += has ? 1 : 0;
            using_it += world.hosts[h].uses ? 1 : 0;
            if (has || world.hosts[h].uses) users += names_[h] + " ";
            if (world.hosts[h].uses && h > 0) ++used_after_move_;
        }
        return allowed > 1 || using_it > 1 ? users : std::string();
    }

    void act_of_hosts(World const& world) {
        auto const documents = histories_[world.history].states.size();
        for (std::size_t h = 0; h < names_.size(); ++h) {
            auto const& host = world.hosts[h];
            if (host.uses || may(world, h, host.document)) {
                auto next = world;
                next.hosts[h].uses = !host.uses;
                found(std::move(next));
            }
            for (std::size_t pushed = 0; pushed < documents; ++pushed) {
                bool const older = pushed < host.document && mistake_ != Mistake::older_documents;
                bool const in_use =
                    host.uses && !may(world, h, pushed) && mistake_ != Mistake::taken_while_used;
                if (older || in_use || pushed == host.document) continue;
                auto next = world;
                next.hosts[h].document = pushed;
                found(std::move(next));
            }
        }
    }

    void act_of_replicas(World const& world, std::size_t read_at) {
        if (histories_[world.history].states.size() > changes_max_) return;
        auto const read = histories_[world.history].states[read_at];
        for (auto const& name : names_)
            commit_on(world, begin_move(read, moving, {name, "", "vm"}, {}));
        for (std::size_t h = 0; h < names_.size(); ++h) {
            // The host answers for the document that it has, and says which.
            auto const has = histories_[world.history].states[world.hosts[h].document].revision;
            auto const generation = mistake_ == Mistake::any_answer ? UINT64_MAX : has;
            commit_on(world, note_given_up(read, moving, Acknowledged{names_[h], generation}, {}));
        }
        commit_on(world, claim_it(read, moving, {}));
        if (auto aborted = abort_move(read, moving, {}).transition)
            commit_on(world, Result<Transition>(std::move(*aborted)));
        if (mistake_ == Mistake::claim_at_once && claim_of(read, moving)) {
            auto early = read;
            early.claims.front().claim.state = ClaimState::given_up;
            commit_on(world, claim_it(early, moving, {}));
        }
    }

    void commit_on(World const& world, Result<Transition> const& transition) {
        if (!transition) return;
        auto etcd = histories_[world.history].states.back();
        if (!test::commit(etcd, *transition)) return;
        auto longer = histories_[world.history];
        add_state(longer, std::move(etcd));
        found({number_of(std::move(longer)), world.hosts});
    }

    std::vector<std::string> const names_;
    std::size_t const changes_max_;
    Mistake const mistake_;
    std::vector<History> histories_;
    std::map<HistoryKey, std::size_t> numbers_;
    std::deque<World> next_;
    std::set<World> known_;
    std::size_t used_after_move_ = 0;
};

Snapshot at_home() {
    Snapshot fleet;
    test::add_block(fleet, moving, moving, "a");
    return fleet;
}
// In the block of a host that has no part in it.
Snapshot away_from_home() {
    Snapshot fleet;
    test::add_block(fleet, moving, moving, "c");
    fleet.claims.push_back({{moving, ClaimState::held, "a", "c", "vm", "", {}, "", ""}, 2});
    fleet.revision = 2;
    return fleet;
}

TEST(MovesModel, NoTwoHostsMayUseAnIdentity) {
    for (auto const& [first, hosts, changes] :
         {std::tuple{at_home(), std::vector<std::string>{"a", "b"}, 11U},
          std::tuple{away_from_home(), std::vector<std::string>{"a", "b"}, 11U},
          std::tuple{at_home(), std::vector<std::string>{"a", "b", "c"}, 6U}}) {
        auto const began = std::chrono::steady_clock::now();
        Checker checker(first, hosts, changes, Mistake::none);
        EXPECT_EQ(checker.run(), "");
        std::chrono::duration<double> const took = std::chrono::steady_clock::now() - began;
        std::cout << "[  states  ] " << checker.states() << " of " << hosts.size() << " hosts, "
                  << changes << " changes: " << took.count() << " s\n";
        EXPECT_GT(checker.used_after_move(), 100U) << "moves come to their end";
    }
}

TEST(MovesModel, FindsEachMistake) {
    for (auto const mistake : {Mistake::any_answer, Mistake::claim_at_once,
                               Mistake::older_documents, Mistake::taken_while_used}) {
        Checker checker(at_home(), {"a", "b"}, 6, mistake);
        EXPECT_NE(checker.run(), "") << static_cast<int>(mistake);
    }
}

}  // namespace
}  // namespace vfmgr::fleet
