// SPDX-License-Identifier: Apache-2.0
// etcd_probe SETTINGS: what service/fleet/etcd does with a real etcd, for tests/fleet/test_etcd.py.
// SETTINGS is JSON; each line of standard input is a command as JSON, and gets one line as answer.
#include <fmt/format.h>

#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "api/os/random.hpp"
#include "service/fleet/etcd/answers.hpp"
#include "service/fleet/etcd/election.hpp"
#include "service/fleet/etcd/follower.hpp"
#include "service/fleet/etcd/grpc_etcd.hpp"
#include "service/fleet/etcd/settle.hpp"
#include "tests/fakes/etcd_claims.hpp"

namespace vfmgr::fleet {
namespace {

using Document = nlohmann::json;
using std::chrono::seconds;

Document shown(Error const& error) {
    Document causes = Document::array();
    for (auto const& one : error.causes) causes.push_back({one.call, one.code, one.text});
    return {{"problem", code(error.problem)},
            {"detail", error.detail},
            {"remedy", error.remedy},
            {"compacted", is_compacted(error)},
            {"causes", causes}};
}

class Probe {
  public:
    explicit Probe(std::unique_ptr<Etcd> etcd) : etcd_(std::move(etcd)) {}

    Document answer(Document const& command) {
        static std::map<std::string, Document (Probe::*)(Document const&)> const all{
            {"put", &Probe::put},           {"range", &Probe::range},
            {"claims", &Probe::claims},     {"members", &Probe::members},
            {"watch", &Probe::watch},       {"next", &Probe::next},
            {"count_up", &Probe::count_up}, {"fill", &Probe::fill},
            {"follow", &Probe::follow},     {"followed", &Probe::followed},
            {"elect", &Probe::elect},       {"election", &Probe::election},
            {"resign", &Probe::resign}};
        return (this->*all.at(command.at("do")))(command);
    }

  private:
    [[nodiscard]] static Deadline in(Document const& command) {
        return system_clock().steady_now() + seconds(command.value("seconds", 10));
    }

    Document put(Document const& command) {
        auto const outcome =
            etcd_->commit({{}, {Put{command.at("key"), command.at("value")}}}, in(command));
        return outcome ? Document{{"revision", outcome->revision}} : shown(outcome.error());
    }
    Document range(Document const& command) {
        auto const found =
            etcd_->range({.key = command.at("key"), .match = Match::prefix}, in(command));
        if (!found) return shown(found.error());
        Document keys = Document::object();
        for (auto const& one : found->entries) keys[one.key] = one.value;
        return {{"keys", keys}, {"revision", found->revision}};
    }
    Document claims(Document const&) {
        return {{"broken", broken_claims(*etcd_, system_clock(), seconds(20))}};
    }
    Document members(Document const& command) {
        Document all = Document::array();
        for (auto const& one : etcd_->members(in(command)))
            all.push_back({{"id", one.id},
                           {"name", one.name},
                           {"url", one.url},
                           {"problem", one.problem ? shown(*one.problem) : Document()},
                           {"version", one.version},
                           {"leader", one.leader},
                           {"bytes", one.bytes},
                           {"alarms", one.alarms}});
        return {{"members", all}};
    }
    Document watch(Document const& command) {
        auto made = etcd_->watch({.key = command.at("key"), .revision = command.at("revision")},
                                 in(command));
        if (!made) return shown(made.error());
        watch_ = std::move(*made);
        return Document::object();
    }
    Document next(Document const& command) {
        auto const batch = watch_->next(in(command));
        if (!batch) return shown(batch.error());
        Document keys = Document::array();
        if (*batch)
            for (auto const& one : (*batch)->changes) keys.push_back(one.key);
        return {{"nothing", !*batch}, {"keys", keys}};
    }

    // Adds one to a number for so many seconds, as others do, too. What is not known stays so.
    Document count_up(Document const& command) {
        std::string const key = command.at("key");
        Stop stop;
        Timing const timing{system_clock(), [&](Deadline then) { return stop.wait_until(then); }};
        auto const until = in(command);
        std::map<std::string, int> ended;
        Document last;
        auto longest = Deadline::duration::zero();
        while (system_clock().steady_now() < until) {
            auto const began = system_clock().steady_now();
            auto const found = etcd_->range({.key = key}, began + seconds(30));
            if (!found) {
                last = shown(found.error());
                ++ended["not read"];
                stop.wait_until(system_clock().steady_now() + std::chrono::milliseconds(100));
                continue;
            }
            auto const settled = settle(*etcd_, one_more(key, *found), timing, began + seconds(60));
            longest = std::max(longest, system_clock().steady_now() - began);
            if (!settled) last = shown(settled.error());
            if (!settled)
                ++ended[std::string(code(settled.error().problem))];
            else
                ++ended[std::holds_alternative<Done>(*settled) ? "done" : "refused"];
        }
        using std::chrono::duration_cast;
        return {{"ended", ended},
                {"last", last},
                {"longest_ms", duration_cast<std::chrono::milliseconds>(longest).count()}};
    }
    static GuardedTransaction one_more(std::string const& key, Found const& found) {
        GuardedTransaction one{{{absent(key)}, {}}, key, random_hex(16)};
        int number = 0;
        if (!found.entries.empty()) {
            number = Document::parse(found.entries.front().value).at("number");
            one.transaction.compares = {unchanged(key, found.entries.front().mod_revision)};
        }
        Document const value{{"number", number + 1}, {"act", one.act}};
        one.transaction.writes = {Put{key, value.dump()}, Put{"acts/" + one.act, ""}};
        return one;
    }

    // Creates keys with a large value until it fails.
    Document fill(Document const& command) {
        Stop stop;
        Timing const timing{system_clock(), [&](Deadline then) { return stop.wait_until(then); }};
        for (int number = 0;; ++number) {
            auto const key = fmt::format("fill/{:06}", number);
            GuardedTransaction one{{{absent(key)}, {}}, key, random_hex(16)};
            one.transaction.writes = {Put{key, one.act + std::string(100'000, 'x')}};
            auto const settled = settle(*etcd_, one, timing, in(command));
            if (!settled)
                return {{"done", number}, {"last", key}, {"error", shown(settled.error())}};
        }
    }

    Document follow(Document const& command) {
        follower_ = std::make_unique<Follower>(
            *etcd_, system_clock(), FollowerSettings{.prefix = command.at("key")},
            FollowerCalls{[this](auto const& all, Revision) {
                              std::lock_guard const lock(mutex_);
                              ++resets_;
                              for (auto const& one : all) copy_[one.key] = one.value;
                          },
                          [this](auto const& changes, Revision) {
                              std::lock_guard const lock(mutex_);
                              for (auto const& one : changes)
                                  if (one.now)
                                      copy_[one.key] = one.now->value;
                                  else
                                      copy_.erase(one.key);
                          },
                          [this](auto) {
                              std::lock_guard const lock(mutex_);
                              ++freshness_;
                          }});
        follower_->start();
        return Document::object();
    }
    Document followed(Document const&) {
        auto const problem = follower_->problem();
        std::lock_guard const lock(mutex_);
        return {{"keys", copy_},
                {"resets", resets_},
                {"freshness", freshness_},
                {"stale", follower_->stale_since().has_value()},
                {"problem", problem ? shown(*problem) : Document()}};
    }

    Document elect(Document const& command) {
        auto const call = [this](std::string what) {
            std::lock_guard const lock(mutex_);
            calls_.push_back(std::move(what));
        };
        election_ = std::make_unique<Election>(
            *etcd_, system_clock(), LeasedKey{"election/scheduler", command.at("value")},
            ElectionCalls{[call](Revision) { call("elected"); }, [call] { call("lost"); }});
        election_->start();
        return Document::object();
    }
    Document election(Document const&) {
        auto const fence = election_->fence();
        auto const leader = election_->leader();
        std::lock_guard const lock(mutex_);
        return {{"fence", fence ? Document(*fence) : Document()},
                {"leader", leader ? Document(leader->value) : Document()},
                {"calls", calls_}};
    }
    Document resign(Document const&) {
        election_->stop();
        return Document::object();
    }

    std::unique_ptr<Etcd> etcd_;
    std::unique_ptr<Watch> watch_;
    std::mutex mutex_;  // guards the members below, up to the pointers
    std::map<std::string, std::string> copy_;
    int resets_ = 0;
    int freshness_ = 0;
    std::vector<std::string> calls_;
    std::unique_ptr<Follower> follower_;
    std::unique_ptr<Election> election_;
};

int serve(Document const& settings) {
    auto etcd = grpc_etcd({.endpoints = settings.at("endpoints"),
                           .prefix = settings.at("prefix"),
                           .ca_file = settings.at("ca_file"),
                           .certificate_file = settings.at("certificate_file"),
                           .key_file = settings.at("key_file")});
    if (!etcd) {
        std::cerr << etcd.error().detail << '\n';
        return 2;
    }
    Probe probe(std::move(*etcd));
    for (std::string line; std::getline(std::cin, line);)
        std::cout << probe.answer(Document::parse(line)).dump() << std::endl;
    return 0;
}

}  // namespace
}  // namespace vfmgr::fleet

int main(int count, char** words) {
    if (count != 2) {
        std::cerr << "usage: etcd_probe SETTINGS\n";
        return 2;
    }
    return vfmgr::fleet::serve(nlohmann::json::parse(words[1]));
}
