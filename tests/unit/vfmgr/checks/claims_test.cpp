// SPDX-License-Identifier: Apache-2.0
// No claim is wider than the look behind it. Each fact of each machine is made unreadable, one at a
// time. A rule whose findings change reads that fact, and may then say neither "ok" nor "not
// applicable" where it did not before, nor drop what it had reported.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>

#include "tests/unit/vfmgr/checks/bundles.hpp"
#include "vfmgr/machine/read_devices.hpp"

namespace vfmgr::checks {
namespace {

using namespace test;

// Subject, result, detail; whether each of its evidence is a line of the kernel's log.
using Statement = std::tuple<std::string, CheckResult, std::string, bool>;
using StatementsByRule = std::map<std::string, std::set<Statement>>;

bool is_shown_by_log(Finding const& finding) {
    return std::ranges::all_of(finding.evidence, [](Evidence const& evidence) {
        return evidence.source == "the kernel's log";
    });
}

StatementsByRule said_on(Facts const& facts) {
    StatementsByRule said;
    for (auto const& one : diagnose(facts, all_rules()).findings)
        said[one.rule].insert({one.subject, one.result, one.detail, is_shown_by_log(one)});
    return said;
}

bool is_bad(CheckResult result) {
    return result == CheckResult::failed || result == CheckResult::warning;
}

bool is_claim(CheckResult result) {
    return result == CheckResult::ok || result == CheckResult::not_applicable;
}

struct Tally {
    int pairs = 0;  // of a rule and a fact that it reads
    std::vector<std::string> wrong;
    std::set<std::string> readers;
};

void compare(std::string const& where, StatementsByRule const& before,
             StatementsByRule const& after, Tally& tally) {
    for (auto const& [rule, said] : after) {
        auto const found = before.find(rule);
        auto const& had = found == before.end() ? std::set<Statement>() : found->second;
        if (said == had) continue;
        ++tally.pairs;
        tally.readers.insert(rule);
        bool const admits = std::ranges::any_of(
            said, [](Statement const& one) { return std::get<1>(one) == CheckResult::unknown; });
        // What was unknown for a reason that no longer matters may be known.
        auto const was_unknown = [&](Statement const& claim) {
            return std::ranges::any_of(had, [&](Statement const& other) {
                return std::get<0>(other) == std::get<0>(claim) &&
                       std::get<1>(other) == CheckResult::unknown;
            });
        };
        for (auto const& one : said)
            if (is_claim(std::get<1>(one)) && !had.contains(one) && !was_unknown(one))
                tally.wrong.push_back(fmt::format("{}: {} {} newly claims: {}", where, rule,
                                                  std::get<0>(one), std::get<2>(one)));
        // Where nobody looked at the devices, those that the log names are judged by the log alone.
        bool const by_log_alone = where.ends_with(" without /sys/bus/pci/devices");
        for (auto const& one : said)
            if (is_bad(std::get<1>(one)) && !(by_log_alone && std::get<3>(one)) &&
                std::ranges::none_of(had, [&](Statement const& other) {
                    // The same fault may be put down to the device, or to all.
                    bool const same = std::get<0>(other) == std::get<0>(one) ||
                                      std::get<0>(one).empty() ||
                                      std::get<2>(other) == std::get<2>(one);
                    return same && is_bad(std::get<1>(other));
                }))
                tally.wrong.push_back(fmt::format("{}: {} {} newly accuses: {}", where, rule,
                                                  std::get<0>(one), std::get<2>(one)));
        for (auto const& one : had) {
            auto const speaks = [&](Statement const& other) {
                return std::get<0>(other) == std::get<0>(one) && !is_claim(std::get<1>(other));
            };
            if (is_bad(std::get<1>(one)) && !admits && std::ranges::none_of(said, speaks))
                tally.wrong.push_back(fmt::format("{}: {} {} no longer says: {}", where, rule,
                                                  std::get<0>(one), std::get<2>(one)));
        }
    }
}

// Calls `look` once for each fact, while that fact can't be read.
template <class Look>
void without_each(Facts& facts, Look look) {
    auto const each = [&](auto& of) {
        for (auto& [name, fact] : of) {
            if (fact.error != 0) continue;
            auto const kept = fact;
            fact = {};
            fact.error = EACCES;
            look(name);
            fact = kept;
        }
    };
    each(facts.files);
    each(facts.links);
    each(facts.folders);
    each(facts.netlink);
    each(facts.commands);
}

void judge(std::string const& name, nlohmann::json const& document, Tally& tally) {
    auto facts = facts_of(document);
    auto const before = said_on(facts);
    without_each(facts, [&](std::string const& unread) {
        compare(name + " without " + unread, before, said_on(facts), tally);
    });
}

void expect_none_wrong(Tally const& tally) {
    constexpr std::size_t shown = 200;
    for (std::size_t i = 0; i < std::min(shown, tally.wrong.size()); ++i)
        ADD_FAILURE() << tally.wrong[i];
    EXPECT_EQ(tally.wrong.size(), 0U) << "of " << tally.pairs << " pairs";
    testing::Test::RecordProperty("pairs", tally.pairs);
    std::cout << tally.pairs << " pairs of a rule and a fact that it reads\n";
}

class Claims : public testing::TestWithParam<std::string> {};

TEST_P(Claims, EndWhereAFactIsUnread) {
    Tally tally;
    judge(GetParam(), document_of(GetParam()), tally);
    EXPECT_GT(tally.pairs, 0);
    expect_none_wrong(tally);
}

INSTANTIATE_TEST_SUITE_P(Bundles, Claims, testing::ValuesIn(names_in(bundles)),
                         [](auto const& one) {
                             auto name = one.param;
                             std::ranges::replace_if(
                                 name, [](char byte) { return byte == '-'; }, '_');
                             return name;
                         });

// Set VFMGR_CLAIMS=all (tests/run --long does) for every case and every trouble of the lab, too.
TEST(ClaimsOfCases, EndWhereAFactIsUnread) {
    auto const* const which = std::getenv("VFMGR_CLAIMS");
    bool const all = which && std::string_view(which) == "all";
    Tally tally;
    auto const cases = all_cases();
    constexpr std::size_t one_of = 100;
    for (std::size_t i = 0; i < cases.size(); i += all ? 1 : one_of)
        judge(cases[i].name, document_of(cases[i]), tally);
    if (all)
        for (auto const& name : names_in(bundles / "lab"))
            judge(name, document_of("lab/" + name), tally);
    expect_none_wrong(tally);
    if (!all) return;
    for (auto const& rule : all_rules())
        EXPECT_TRUE(tally.readers.contains(std::string(rule.id))) << rule.id << " reads nothing";
}

// An error that nobody here knows, of a NIC that the log calls by name.
TEST(Claims, OfTheLogEndAtAnUnknownError) {
    int told = 0;
    for (auto const& name : names_in(bundles)) {
        auto facts = facts_of(document_of(name));
        auto const log = facts.files.find("/dev/kmsg");
        if (log == facts.files.end() || log->second.error != 0) continue;
        Reads reads;
        auto const devices = read_pci_devices(facts, reads);
        if (!devices) continue;
        for (auto const& device : *devices) {
            if (!is_network(device) || !device.driver()) continue;
            auto const kept = log->second.bytes;
            auto const address = to_string(device.address);
            log->second.bytes += fmt::format("3,99999,99999999,-;{} {}: the frobnicator is out\n",
                                             *device.driver(), address);
            for (auto const& one : diagnose(facts, device_log_rules).findings)
                EXPECT_FALSE(one.subject == address && one.rule == "log.nic" &&
                             one.result == CheckResult::ok)
                    << name << ": " << one.detail;
            log->second.bytes = kept;
            ++told;
        }
    }
    EXPECT_GT(told, 10);
}

}  // namespace
}  // namespace vfmgr::checks
