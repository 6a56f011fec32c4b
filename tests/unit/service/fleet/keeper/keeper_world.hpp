// SPDX-License-Identifier: Apache-2.0
// Hosts that take their identities as vfmgrd does, and replicas of a fleet that give them some, on
// one etcd in memory. For tests; one thread drives it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "api/types/json.hpp"
#include "service/fleet/keeper/keeper.hpp"
#include "service/fleet/membership.hpp"
#include "tests/fakes/fake_etcd.hpp"

namespace vfmgr::fleet::test {

inline constexpr std::chrono::seconds patience{10};

struct FakeHost {
    Identities has{};
    std::uint64_t revision = 0;  // its ETag
    std::uint64_t fence = 0;
    std::map<std::string, Identity> in_use{};  // by attachment
    std::uint16_t vfs = 8;
    bool silent = false;        // answers nothing
    bool loses_answer = false;  // of the next PUT, which it has carried out
    int reads = 0;
    int puts = 0;

    [[nodiscard]] Error old_fence() const {
        return {Problem::precondition_failed, "this is an older scheduler of the fleet", ""};
    }
    Result<http::Response> put(http::Request const& request) {
        ++puts;
        auto const wanted = from_json_text<IdentitiesView>(request.body);
        EXPECT_TRUE(wanted) << wanted.error().detail;
        auto const& next = wanted->identities;
        auto const match = request.headers.find("if-match");
        if (match != request.headers.end() && match->second != etag())
            return fail(Problem::precondition_failed, "another revision");
        if (next == has) return view();
        if (has.generation && next.generation <= has.generation)
            return fail(Problem::precondition_failed, "a later generation is in force");
        for (auto const& [attachment, identity] : in_use)
            if (has.generation && may_use(has, identity) && !may_use(next, identity))
                return fail(Problem::conflict, "what is in use here can't be taken away: " +
                                                   attachment + " has " + described(identity));
        has = next;
        ++revision;
        if (!loses_answer) return view();
        loses_answer = false;
        return fail(Problem::timed_out, "no answer");
    }
    [[nodiscard]] std::string etag() const { return "\"" + std::to_string(revision) + "\""; }
    [[nodiscard]] http::Response view() const {
        auto response = http::json_response(200, JsonWriter::encode(IdentitiesView{has, {}}));
        response.headers["etag"] = etag();
        return response;
    }
    [[nodiscard]] std::string attachment_text(std::string const& id) const {
        auto const& identity = in_use.at(id);
        return R"({"id":")" + id + R"(","spec":{},"vf":{"pf":"0000:01:00.0","index":0},)" +
               R"("vm":"vm-)" + id + R"(","vm_uuid":"u-)" + id + R"(","settings":{"mac":")" +
               to_string(identity) + R"("},"state":"attached"})";
    }
    Result<http::Response> answer(http::Request const& request) {
        if (auto const shown = request.headers.find("vfmgr-fence");
            shown != request.headers.end()) {
            auto const of = std::stoull(shown->second);
            if (of < fence) return http::problem_response(old_fence(), request.path, "");
            fence = of;
        }
        std::string const attachments = "/v1/attachments/";
        if (request.path.starts_with(attachments)) {
            auto const id = request.path.substr(attachments.size());
            http::Response response;
            response.status = in_use.contains(id) ? 200 : 404;
            if (in_use.contains(id)) response.body = attachment_text(id);
            return response;
        }
        if (request.method == "GET") {
            ++reads;
            return view();
        }
        auto done = put(request);
        if (done || done.error().problem == Problem::timed_out) return done;
        return http::problem_response(done.error(), request.path, "");
    }
    [[nodiscard]] HostDocuments documents() const {
        HostDocuments all;
        auto const at = Time{std::chrono::hours(1)};
        PfFacts pf;
        pf.pci = PciAddress::parse("0000:01:00.0").value();
        pf.mode = PfMode::manage;
        pf.num_vfs = vfs;
        all.pfs = std::make_shared<Part<PfFacts>>(Part<PfFacts>{{{"", pf}}, {}, at});
        Part<AttachmentFacts> attachments;
        for (auto const& [id, identity] : in_use)
            attachments.items.push_back(
                {attachment_text(id), read_facts<AttachmentFacts>(attachment_text(id)).value()});
        all.attachments = std::make_shared<Part<AttachmentFacts>>(std::move(attachments));
        IdentitiesPart identities;
        identities.generation = has.generation;
        all.identities = std::make_shared<IdentitiesPart>(std::move(identities));
        return all;
    }
};

struct World;

// One replica's keeper, with connections to etcd of its own.
struct Leader {
    explicit Leader(World& world);
    ~Leader() { registry.stop(); }
    Leader(Leader const&) = delete;
    Leader& operator=(Leader const&) = delete;

    void turn();
    // Until nothing is asked of hosts and nothing is written any more.
    void settle();

    World& world;
    FakeEtcd reads;
    FakeEtcd writes;
    std::optional<Revision> fence{};
    Stop stop;
    Registry registry;
    Writer writer;
    Keeper keeper;
};

struct World {
    Clock& clock = system_clock();
    FakeCluster cluster{clock};
    Inventory inventory;
    std::map<std::string, FakeHost> hosts;
    std::set<std::string> away;
    std::map<std::string, std::string> quarantined;  // by host: why
    std::uint32_t numbers = 0;
    using Shown =
        std::tuple<std::map<std::string, Identity>, std::uint16_t, std::optional<std::uint64_t>>;
    std::map<std::string, Shown> observed;  // by host

    World() { give("02:00:00:00:00:00-02:00:00:00:ff:ff"); }
    void give(std::string const& macs) {
        IdentitiesRecord record;
        record.act = "ranges";
        if (!macs.empty()) record.ranges.macs = {Range<MacAddress>::parse(macs).value()};
        cluster.put("identities", record_text(record));
    }
    FakeHost& join(std::string const& name) {
        HostRecord record;
        record.number = ++numbers;
        record.url = "https://" + name + ":1";
        record.public_key = "key of " + name;
        record.state = FleetHostState::active;
        cluster.put("hosts/" + name, record_text(record));
        MarkRecord mark;
        mark.store = "store of " + name;
        mark.event = 1;
        cluster.put("marks/" + name, record_text(mark));
        return hosts[name];
    }
    void claim(std::string const& mac, ClaimState state, std::string const& host,
               std::string const& from) {
        ClaimRecord record;
        record.state = state;
        record.host = host;
        record.from = from;
        record.act = "claim";
        cluster.put("claims/mac/" + mac, record_text(record));
    }
    [[nodiscard]] std::optional<ClaimRecord> claim_of_mac(std::string const& mac) {
        auto const keys = cluster.keys();
        auto const found = keys.find("claims/mac/" + mac);
        if (found == keys.end()) return std::nullopt;
        return read_record<ClaimRecord>(found->second.value).value();
    }
    [[nodiscard]] std::uint64_t marked(std::string const& host) {
        return read_record<MarkRecord>(cluster.keys().at("marks/" + host).value)->generation;
    }
    [[nodiscard]] FleetHostState state_of(std::string const& host) {
        return read_record<HostRecord>(cluster.keys().at("hosts/" + host).value)->state;
    }
    [[nodiscard]] std::size_t blocks_of(std::string const& host) {
        std::size_t count = 0;
        for (auto const& [key, entry] : cluster.keys())
            count +=
                key.starts_with("blocks/") && read_record<BlockRecord>(entry.value)->host == host;
        return count;
    }
    void elect(Leader& leader) {
        cluster.erase("election/scheduler");
        leader.fence = cluster.put("election/scheduler", record_text(LeaderRecord{"r", "u"}));
    }
    // As a replica sees the hosts.
    void observe() {
        for (auto const& [name, host] : hosts) {
            if (!inventory.find(name)) inventory.put_host({name, 1, "", {}}, clock.now());
            auto shown = std::tuple(host.in_use, host.vfs, host.has.generation);
            if (auto const known = observed.find(name);
                known != observed.end() && known->second == shown)
                continue;
            inventory.put_documents(name, host.documents());
            observed.insert_or_assign(name, std::move(shown));
        }
        inventory.publish();
    }
    [[nodiscard]] std::shared_ptr<Reaches const> reaches() const {
        auto all = std::make_shared<Reaches>();
        for (auto const& [name, host] : hosts) {
            Reach reach;
            if (away.contains(name)) reach.unreachable_since = Time{};
            all->emplace(name, reach);
        }
        return all;
    }
    void ask(HostRecord const& record, http::Request const& request,
             Keeper::Answered const& answered) {
        auto const name = record.url.substr(8, record.url.find(':', 8) - 8);
        auto& host = hosts.at(name);
        if (host.silent) return;
        answered(host.answer(request));
        check_nobody_shares();
    }
    // What hosts may hand out has nothing in common, at any instant.
    void check_nobody_shares() const {
        for (auto const& [one, host] : hosts)
            for (auto const& [other, second] : hosts)
                if (one < other && host.has.generation && second.has.generation)
                    for (auto const& range : host.has.macs)
                        for (auto const& also : second.has.macs)
                            EXPECT_FALSE(range.overlaps(also)) << one << " and " << other;
    }
};

inline Leader::Leader(World& in)
    : world(in),
      reads(in.cluster),
      writes(in.cluster),
      registry(reads, in.clock, [](auto const&) {}),
      writer(writes, registry, {in.clock, [this](Deadline then) { return stop.wait_until(then); }}),
      keeper({writes, registry, writer, in.clock, [this] { return fence; },
              [this] { return world.inventory.snapshot(); }, [this] { return world.reaches(); },
              [this](HostRecord const& host, http::Request const& request,
                     Keeper::Answered const& answered) { world.ask(host, request, answered); },
              [this](std::string const& host, std::string const& why) {
                  world.quarantined[host] = why;
              }}) {
    registry.start();
}

inline void Leader::turn() {
    world.observe();
    auto const until = world.clock.steady_now() + patience;
    EXPECT_TRUE(registry.wait_for(world.cluster.revision(), until));
    // That etcd confirms it follows.
    while (registry.state()->stale_since && world.clock.steady_now() < until)
        std::this_thread::yield();
    keeper.turn();
}

inline void Leader::settle() {
    constexpr int turns_max = 100;
    auto const activity = [&] {
        int sum = static_cast<int>(world.cluster.revision());
        for (auto const& [name, host] : world.hosts) sum += host.reads + host.puts;
        return sum;
    };
    int quiet = 0;
    for (int i = 0; i < turns_max && quiet < 2; ++i) {
        auto const before = activity();
        turn();
        quiet = activity() == before ? quiet + 1 : 0;
    }
    EXPECT_EQ(quiet, 2) << "it never comes to rest";
}

}  // namespace vfmgr::fleet::test
