// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/etcd_claims.hpp"

#include <algorithm>

namespace vfmgr::fleet {
namespace {

class Claims {
  public:
    Claims(Etcd& etcd, Clock const& clock, std::chrono::seconds patience)
        : etcd_(etcd), clock_(clock), patience_(patience) {}

    std::vector<std::string> run() {
        commit({{}, {Erase{"claims/", Match::prefix}}});
        creation();
        comparisons();
        reads_of_the_past();
        pages();
        refusals();
        watches();
        leases();
        return broken_;
    }

  private:
    void claim(bool holds, std::string what) {
        if (!holds) broken_.push_back(std::move(what));
    }
    [[nodiscard]] Deadline soon() const { return clock_.steady_now() + patience_; }
    Outcome commit(Transaction const& transaction) {
        auto const outcome = etcd_.commit(transaction, soon());
        claim(outcome.has_value(), "a transaction is answered");
        return outcome ? *outcome : Outcome{};
    }
    Found range(Query const& query) {
        auto const found = etcd_.range(query, soon());
        claim(found.has_value(), "a range is answered");
        return found ? *found : Found{};
    }

    void creation() {
        Transaction const create{
            {absent("claims/a")}, {Put{"claims/a", "1"}, Put{"claims/b", "1"}}, {"claims/a"}};
        auto const first = commit(create);
        claim(first.succeeded, "a key is created once");
        auto const again = commit(create);
        claim(!again.succeeded, "and not twice");
        claim(again.found == std::vector{KeyValue{"claims/a", "1", first.revision, first.revision}},
              "the key that is there is read instead");
        claim(again.revision == first.revision, "what writes nothing makes no revision");
        auto const changed = commit({{}, {Put{"claims/a", "2"}}});
        claim(changed.revision == first.revision + 1, "each transaction is one revision");
        claim(range({.key = "claims/a"}).entries ==
                  std::vector{KeyValue{"claims/a", "2", first.revision, changed.revision}},
              "a key keeps the revision of its creation");
        claim(range({.key = "claims/b"}).entries.front().mod_revision == first.revision,
              "all keys of a transaction have its revision");
        auto const nothing = commit({{}, {Erase{"claims/none"}}});
        claim(nothing.succeeded && nothing.revision == changed.revision,
              "erasing what is not there makes no revision");
    }

    void comparisons() {
        auto const a = range({.key = "claims/a"}).entries.front();
        auto const holds = [this](Compare compare) { return commit({{compare}, {}}).succeeded; };
        claim(holds(unchanged("claims/a", a.mod_revision)), "the revision of the last write");
        claim(!holds(unchanged("claims/a", a.create_revision)), "and no earlier one");
        claim(holds(created_at("claims/a", a.create_revision)), "the revision of the creation");
        claim(holds(present("claims/a")) && !holds(present("claims/none")), "present");
        claim(holds(absent("claims/none")) && !holds(absent("claims/a")), "absent");
        claim(holds(unchanged("claims/none", 0)), "an absent key has revision 0");
        Compare value{.key = "claims/a", .on = Compare::On::value, .value = "2"};
        claim(holds(value), "the value");
        value.value = "3";
        claim(!holds(value), "another value");
        value.is = Compare::Is::not_equal;
        claim(holds(value), "not another value");
        value.key = "claims/none";
        claim(!holds(value), "an absent key fails any comparison of its value");
        claim(holds({.key = "claims/none", .on = Compare::On::lease}), "no lease is 0");
    }

    void reads_of_the_past() {
        auto const before = range({.key = "claims/a"});
        auto const after = commit({{}, {Erase{"claims/a"}}});
        claim(range({.key = "claims/a"}).entries.empty(), "an erased key is gone");
        auto const past = range({.key = "claims/a", .revision = after.revision - 1});
        claim(past.entries == before.entries, "its past can be read");
        claim(past.revision == after.revision, "the answer has the revision of now");
        auto const again = commit({{absent("claims/a")}, {Put{"claims/a", "new"}}});
        claim(again.succeeded &&
                  range({.key = "claims/a"}).entries.front().create_revision == again.revision,
              "a key that is created again has a new revision of creation");
        auto const future =
            etcd_.range({.key = "claims/a", .revision = again.revision + 1'000}, soon());
        claim(!future && future.error().problem == Problem::unavailable,
              "the future can't be read");
    }

    void pages() {
        commit({{},
                {Put{"claims/p/1", "1"}, Put{"claims/p/2", "2"}, Put{"claims/p/2/3", "3"},
                 Put{"claims/p0", "4"}}});
        Query query{.key = "claims/p/", .match = Match::prefix, .limit = 2};
        auto const first = range(query);
        claim(first.more && first.entries.size() == 2 && first.entries[1].key == "claims/p/2",
              "a page is a page, in the order of keys");
        query.from = first.entries.back().key + '\0';
        query.content = Content::no_value;
        auto const second = range(query);
        claim(!second.more && second.entries.size() == 1 &&
                  second.entries[0].key == "claims/p/2/3" && second.entries[0].value.empty(),
              "the next page begins behind it, ends with the prefix, and can be without values");
    }

    void refusals() {
        auto const lease = etcd_.commit({{}, {Put{"claims/l", "", 0x7fff'ffff}}}, soon());
        claim(!lease && lease.error().problem == Problem::not_found, "a lease must be there");
        auto const kept = etcd_.keep_alive(0x7fff'ffff, soon());
        claim(!kept && kept.error().problem == Problem::not_found, "it can't be kept alive");
        claim(etcd_.revoke(0x7fff'ffff, soon()).has_value(), "its end is no failure");
    }

    std::vector<KeyChange> changes(Watch& watch, std::size_t number) {
        std::vector<KeyChange> all;
        while (all.size() < number) {
            auto const batch = watch.next(soon());
            if (!batch || !*batch) break;
            std::ranges::copy((*batch)->changes, std::back_inserter(all));
        }
        return all;
    }

    void watches() {
        auto const from = commit({{}, {Put{"claims/w", "1"}, Put{"claims/x", "1"}}}).revision;
        auto watch =
            etcd_.watch({.key = "claims/w", .match = Match::key, .revision = from}, soon());
        if (!watch) return claim(false, "a watch begins");
        auto const gone = commit({{}, {Erase{"claims/w"}}}).revision;
        claim(changes(**watch, 2) ==
                  std::vector{KeyChange{"claims/w", KeyValue{"claims/w", "1", from, from}, from},
                              KeyChange{"claims/w", std::nullopt, gone}},
              "it begins with its revision, and shows one key's changes in order");
        auto const nothing = (*watch)->next(clock_.steady_now());
        claim(nothing && !*nothing, "and then nothing");
        (*watch)->end();
        claim(!(*watch)->next(soon()), "it ends");
    }

    void leases() {
        using std::chrono::seconds;
        auto const lease = etcd_.grant(seconds(2), soon());
        if (!lease) return claim(false, "a lease is granted");
        claim(lease->ttl == seconds(2), "for as long as asked");
        commit({{}, {Put{"claims/lease/1", "", lease->id}, Put{"claims/lease/2", "", lease->id}}});
        auto const from = range({.key = "claims/lease/1"});
        claim(from.entries.front().lease == lease->id, "a key has its lease");
        auto watch = etcd_.watch({.key = "claims/lease/", .revision = from.revision + 1}, soon());
        claim(etcd_.keep_alive(lease->id, soon()) == seconds(2), "it is kept alive");
        auto const kept_at = clock_.steady_now();
        auto const erased = watch ? changes(**watch, 2) : std::vector<KeyChange>{};
        claim(erased.size() == 2 && !erased[0].now && erased[0].revision == erased[1].revision,
              "keeping makes no change; its end erases its keys in one transaction");
        claim(clock_.steady_now() - kept_at >= std::chrono::milliseconds(1'900),
              "and does not come early");
        auto const other = etcd_.grant(seconds(60), soon());
        if (!other) return claim(false, "another is granted");
        commit({{}, {Put{"claims/lease/3", "", other->id}}});
        claim(etcd_.revoke(other->id, soon()) && range({.key = "claims/lease/3"}).entries.empty(),
              "with a revoked lease its keys go");
    }

    Etcd& etcd_;
    Clock const& clock_;
    std::chrono::seconds const patience_;
    std::vector<std::string> broken_;
};

}  // namespace

std::vector<std::string> broken_claims(Etcd& etcd, Clock const& clock,
                                       std::chrono::seconds patience) {
    return Claims(etcd, clock, patience).run();
}

}  // namespace vfmgr::fleet
