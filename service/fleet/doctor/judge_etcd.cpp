// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "api/types/text.hpp"
#include "service/fleet/doctor/doctor.hpp"

namespace vfmgr::fleet {
namespace {

constexpr double nearly_full = 0.75;
constexpr std::int64_t worth_defragmenting = std::int64_t{256} << 20;
// What a member may be behind while it writes what others have written.
constexpr std::uint64_t entries_behind = 5'000;

// Where vfctl fleet init has put what etcdctl needs.
constexpr auto at_a_member = "on a member of etcd";
constexpr auto variables = ". /etc/vfmgr-etcd/etcdctl.sh";

std::string name_of(MemberStatus const& member) {
    return member.name.empty() ? member.url : member.name;
}

std::string mib(std::int64_t bytes) {
    return fmt::format("{} MiB", (bytes + (1 << 20) - 1) >> 20);
}

std::vector<MemberStatus const*> answering(Observed const& observed) {
    std::vector<MemberStatus const*> all;
    for (auto const& member : observed.members)
        if (!member.problem) all.push_back(&member);
    return all;
}

// A member that knows no leader is there, and in no majority.
bool serves(MemberStatus const& member) {
    return !member.problem && member.leader != 0;
}

std::vector<Finding> judge_members(Observed const& observed) {
    constexpr auto rule = "etcd.members";
    std::vector<Finding> all;
    for (auto const& member : observed.members)
        if (member.problem)
            all.push_back(found(
                CheckResult::warning, rule, name_of(member),
                fmt::format("it does not answer at {}: {}", member.url, member.problem->detail),
                {"systemctl status etcd", "journalctl -u etcd -n 50"}, "on that machine"));
    auto const number = static_cast<std::size_t>(std::ranges::count_if(observed.members, serves));
    auto const of = observed.members.size();
    auto const text = fmt::format("{} of {} members answer and have a leader", number, of);
    if (number * 2 <= of)
        all.push_back(found(
            CheckResult::failed, rule, "", text + ", which is no majority: nothing can be changed",
            {"systemctl start etcd"}, "on members that are down; hosts go on meanwhile"));
    else if ((number - 1) * 2 <= of)
        all.push_back(found(
            CheckResult::warning, rule, "", text + ": the next one that fails stops all changes",
            of < 3 ? std::vector<std::string>{} : std::vector<std::string>{"systemctl start etcd"},
            of < 3 ? "have three members, each on a machine of its own"
                   : "on members that are down"));
    else
        all.push_back(found(CheckResult::ok, rule, "", text));
    return all;
}

std::vector<Finding> judge_leader(Observed const& observed) {
    constexpr auto rule = "etcd.leader";
    std::set<std::uint64_t> leaders;
    std::uint64_t ahead = 0;
    for (auto const* const member : answering(observed)) {
        if (member->leader != 0) leaders.insert(member->leader);
        ahead = std::max(ahead, member->raft_index);
    }
    if (leaders.empty())
        return {found(CheckResult::failed, rule, "",
                      "no member of etcd that answers knows a leader", {"journalctl -u etcd -n 50"},
                      "on each member: it says which others it can't reach")};
    std::vector<Finding> all;
    if (leaders.size() > 1)
        all.push_back(found(CheckResult::warning, rule, "",
                            fmt::format("members of etcd name {} leaders: they elect one now, or "
                                        "are of different clusters",
                                        leaders.size()),
                            {variables, "etcdctl endpoint status -w table"}, at_a_member));
    for (auto const* const member : answering(observed))
        if (member->raft_index + entries_behind < ahead)
            all.push_back(found(CheckResult::warning, rule, name_of(*member),
                                fmt::format("it is {} entries behind: its disk or its network is "
                                            "slower than the others'",
                                            ahead - member->raft_index),
                                {"journalctl -u etcd -n 50"}, "on that machine"));
    if (all.empty())
        all.push_back(found(CheckResult::ok, rule, "", "members of etcd agree on their leader"));
    return all;
}

std::vector<Finding> judge_alarms(Observed const& observed) {
    constexpr auto rule = "etcd.alarms";
    std::vector<Finding> all;
    for (auto const& member : observed.members)
        for (auto const& alarm : member.alarms) {
            if (alarm == "NOSPACE")
                all.push_back(found(
                    CheckResult::failed, rule, name_of(member),
                    "NOSPACE: etcd has no room, and takes no changes until somebody makes some and "
                    "ends the alarm",
                    {variables, fmt::format("etcdctl compact {}", observed.revision),
                     "etcdctl --command-timeout=2m defrag", "etcdctl alarm disarm"},
                    fmt::format("{}; if it is full again soon, set ETCD_QUOTA_BACKEND_BYTES in "
                                "/etc/default/etcd of each member, and restart one after the other",
                                at_a_member)));
            else
                all.push_back(found(
                    CheckResult::failed, rule, name_of(member),
                    fmt::format("{}: what this member has is not what the others have", alarm),
                    {variables, fmt::format("etcdctl member remove {:x}", member.id)},
                    fmt::format("{} that is well; then add it again with an empty folder, and end "
                                "the alarm: etcdctl alarm disarm",
                                at_a_member)));
        }
    if (!all.empty()) return all;
    if (answering(observed).empty())
        return {found(CheckResult::unknown, rule, "", "no member answers")};
    return {found(CheckResult::ok, rule, "", "no member has raised an alarm")};
}

std::vector<Finding> judge_space(Observed const& observed) {
    constexpr auto rule = "etcd.space";
    std::vector<Finding> all;
    for (auto const* const member : answering(observed)) {
        auto const quota = member->bytes_max > 0 ? member->bytes_max : default_quota_bytes;
        auto const text = fmt::format(
            "its database takes {} of {}{}, {} of them in use", mib(member->bytes), mib(quota),
            member->bytes_max > 0 ? "" : " (etcd's default; this version does not say)",
            mib(member->bytes_in_use));
        std::vector<std::string> const defragment{variables, "etcdctl --command-timeout=2m defrag"};
        if (static_cast<double>(member->bytes_in_use) > nearly_full * static_cast<double>(quota))
            all.push_back(found(CheckResult::warning, rule, name_of(*member), text,
                                {variables, fmt::format("etcdctl compact {}", observed.revision),
                                 "etcdctl --command-timeout=2m defrag"},
                                at_a_member));
        else if (static_cast<double>(member->bytes) > nearly_full * static_cast<double>(quota) ||
                 (member->bytes > worth_defragmenting && member->bytes / 4 > member->bytes_in_use))
            all.push_back(
                found(CheckResult::warning, rule, name_of(*member), text, defragment,
                      fmt::format("{}; each member stops for some seconds", at_a_member)));
        else
            all.push_back(found(CheckResult::ok, rule, name_of(*member), text));
    }
    if (all.empty()) all.push_back(found(CheckResult::unknown, rule, "", "no member answers"));
    return all;
}

Finding judge_compaction(Observed const& observed) {
    constexpr auto rule = "etcd.compaction";
    auto const revision = observed.revision;
    if (revision <= old_by)
        return found(CheckResult::ok, rule, "",
                     fmt::format("etcd has had {} revisions in all", revision));
    if (!observed.has_old)
        return found(CheckResult::unknown, rule, "", observed.has_old.error().detail);
    if (!*observed.has_old)
        return found(CheckResult::ok, rule, "",
                     fmt::format("what was {} revisions ago is compacted", old_by));
    return found(
        CheckResult::warning, rule, "",
        fmt::format("etcd still has what was {} revisions ago: nothing compacts it, and it "
                    "grows until it is full",
                    old_by),
        {"echo ETCD_AUTO_COMPACTION_MODE=periodic >> /etc/default/etcd",
         "echo ETCD_AUTO_COMPACTION_RETENTION=1h >> /etc/default/etcd", "systemctl restart etcd"},
        "on one member after the other");
}

// "3.4.23"; absent: it is none.
struct Version {
    std::uint64_t major = 0, minor = 0, patch = 0;
};
std::optional<Version> version_of(std::string_view text) {
    auto const first = text.find('.');
    auto const second = first == text.npos ? first : text.find('.', first + 1);
    if (second == text.npos) return std::nullopt;
    auto const end = text.find_first_not_of("0123456789", second + 1);
    DigitRules const any{.max = UINT32_MAX};
    auto const major = parse_digits(text.substr(0, first), any);
    auto const minor = parse_digits(text.substr(first + 1, second - first - 1), any);
    auto const patch =
        parse_digits(text.substr(second + 1, end == text.npos ? end : end - second - 1), any);
    if (!major || !minor || !patch) return std::nullopt;
    return Version{*major, *minor, *patch};
}

// Debian's versions, and those before them.
bool loses_events(Version const& version) {
    return version.major == 3 && ((version.minor == 4 && version.patch <= 23) ||
                                  (version.minor == 5 && version.patch <= 16));
}

std::vector<Finding> judge_versions(Observed const& observed) {
    constexpr auto rule = "etcd.version";
    std::vector<Finding> all;
    std::set<std::string> series;
    for (auto const* const member : answering(observed)) {
        auto const version = version_of(member->version);
        if (!version) {
            all.push_back(
                found(CheckResult::unknown, rule, name_of(*member), "its version can't be read"));
            continue;
        }
        series.insert(fmt::format("{}.{}", version->major, version->minor));
        if (version->major != 3 || version->minor < 4)
            all.push_back(found(CheckResult::warning, rule, name_of(*member),
                                fmt::format("etcd {} was never tried with vfmgr, which speaks to "
                                            "3.4 and later",
                                            member->version),
                                {}, "upgrade it, one version after the other"));
        else if (loses_events(*version))
            all.push_back(
                found(CheckResult::ok, rule, name_of(*member),
                      fmt::format("etcd {} can lose events of a watch around a compaction "
                                  "(etcd-io/etcd#18089, #19179); replicas list and compare every 5 "
                                  "minutes, and after each interruption",
                                  member->version)));
        else
            all.push_back(found(CheckResult::ok, rule, name_of(*member),
                                fmt::format("etcd {}", member->version)));
    }
    if (series.size() > 1)
        all.push_back(
            found(CheckResult::warning, rule, "",
                  fmt::format("members are of {}: finish the upgrade", fmt::join(series, " and ")),
                  {"apt-get install --only-upgrade etcd-server"}, "on one member after the other"));
    if (all.empty()) all.push_back(found(CheckResult::unknown, rule, "", "no member answers"));
    return all;
}

Finding judge_followed(Observed const& observed) {
    constexpr auto rule = "etcd.followed";
    auto const& state = *observed.state;
    if (!state.stale_since)
        return found(CheckResult::ok, rule, "",
                     fmt::format("replica {} has all of etcd up to revision {}", observed.replica,
                                 state.revision));
    auto const why = observed.not_followed ? ": " + observed.not_followed->detail : "";
    return found(CheckResult::failed, rule, "",
                 fmt::format("replica {} has had nothing from etcd since {}{}", observed.replica,
                             to_rfc3339(*state.stale_since), why),
                 observed.not_followed && !observed.not_followed->remedy.empty()
                     ? std::vector<std::string>{}
                     : std::vector<std::string>{"journalctl -u vfmgr-fleetd -n 50"},
                 observed.not_followed ? observed.not_followed->remedy : "");
}

}  // namespace

std::vector<Finding> judge_etcd(Observed const& observed) {
    std::vector<Finding> all;
    auto const add = [&all](std::vector<Finding> more) {
        std::ranges::move(more, std::back_inserter(all));
    };
    add(judge_members(observed));
    add(judge_leader(observed));
    add(judge_alarms(observed));
    add(judge_space(observed));
    all.push_back(judge_compaction(observed));
    add(judge_versions(observed));
    all.push_back(judge_followed(observed));
    return all;
}

}  // namespace vfmgr::fleet
