// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "service/fleet/doctor/doctor.hpp"

namespace vfmgr::fleet {
namespace {

Finding judge_certificate(CertificateTime const& certificate, Time now) {
    constexpr auto rule = "replica.certificates";
    auto const renew =
        "vfctl fleet init makes another beside the CA's key; copy it to this replica, "
        "and restart it";
    if (!certificate.expires_at)
        return found(CheckResult::unknown, rule, certificate.file,
                     certificate.expires_at.error().detail);
    auto const when = to_rfc3339(*certificate.expires_at);
    if (*certificate.expires_at <= now)
        return found(CheckResult::failed, rule, certificate.file,
                     fmt::format("it expired at {}", when), {}, renew);
    if (*certificate.expires_at <= now + expires_soon)
        return found(CheckResult::warning, rule, certificate.file,
                     fmt::format("it expires at {}", when), {}, renew);
    return found(CheckResult::ok, rule, certificate.file,
                 fmt::format("it is valid until {}", when));
}

Finding judge_presence(State const& state) {
    constexpr auto rule = "replicas.present";
    auto const number = state.replicas->size();
    if (number == 0)
        return found(CheckResult::failed, rule, "",
                     "etcd knows no replica: this one takes part in nothing",
                     {"journalctl -u vfmgr-fleetd -n 50"}, "on this replica");
    if (number == 1)
        return found(
            CheckResult::warning, rule, "",
            fmt::format("{} is the only replica: while it is away, nobody reads or changes "
                        "the fleet",
                        state.replicas->begin()->first),
            {"systemctl start vfmgr-fleetd"},
            "on another machine; vfctl fleet init with one more --replica makes its files");
    return found(CheckResult::ok, rule, "", fmt::format("{} replicas are there", number));
}

Finding judge_scheduler(State const& state) {
    constexpr auto rule = "replicas.scheduler";
    if (!state.leader)
        return found(CheckResult::warning, rule, "", "no replica schedules",
                     {"journalctl -u vfmgr-fleetd -n 50"},
                     "on each replica: one is elected within seconds of the last one's end");
    return found(CheckResult::ok, rule, "",
                 fmt::format("{} schedules", state.leader->record.replica));
}

// One of a host's troubles; absent: it has none of this kind.
std::optional<Finding> judge_reach(std::string const& name, HostRecord const& host,
                                   Reaches const& reaches) {
    constexpr auto rule = "hosts.reached";
    auto const reach = reaches.find(name);
    if (reach == reaches.end() || !reach->second.unreachable_since) return std::nullopt;
    return found(
        CheckResult::warning, rule, name,
        fmt::format("it does not answer since {}: {}; what it had stays as it was",
                    to_rfc3339(*reach->second.unreachable_since), reach->second.unreachable_why),
        {},
        fmt::format("see whether vfmgrd runs there and {} is open for this replica; if "
                    "it is off for good: vfctl host fence {} --evidence TEXT",
                    host.url, name));
}

std::optional<Finding> judge_trust(std::string const& name, HostRecord const& host) {
    constexpr auto rule = "hosts.trusted";
    if (host.state != FleetHostState::quarantined) return std::nullopt;
    return found(CheckResult::failed, rule, name, fmt::format("it is quarantined: {}", host.reason),
                 {fmt::format("vfctl --host fleet host confirm {}", name)},
                 "on a replica, after you have compared what its VMs have with what it says");
}

std::optional<Finding> judge_fence(std::string const& name, HostRecord const& host,
                                   Reaches const& reaches) {
    constexpr auto rule = "hosts.fenced";
    if (!host.fenced) return std::nullopt;
    auto const reach = reaches.find(name);
    bool const answers =
        reach != reaches.end() && reach->second.contact && !reach->second.unreachable_since;
    auto const said = fmt::format("{} has stated at {} that it is off ({})", host.fenced->by,
                                  to_rfc3339(host.fenced->at), host.fenced->reason);
    return found(answers ? CheckResult::failed : CheckResult::warning, rule, name,
                 answers ? said + ", and it answers" : said,
                 {fmt::format("vfctl --host fleet host unfence {}", name)},
                 "on a replica, when it may serve again: first what runs elsewhere must be known");
}

std::optional<Finding> judge_joining(std::string const& name, HostRecord const& host, Time now) {
    constexpr auto rule = "hosts.joined";
    if (host.state != FleetHostState::joining || now - host.joined_at < joins_within)
        return std::nullopt;
    return found(CheckResult::warning, rule, name,
                 fmt::format("it has joined at {}, and no replica has reached it at {}",
                             to_rfc3339(host.joined_at), host.url),
                 {fmt::format("vfctl --host fleet host show {}", name)}, "on a replica");
}

// The fence and the generation of identities are revisions: what a host has had and etcd has not
// come to is of an etcd that had gone on.
std::optional<Finding> judge_history(std::string const& name, Observed const& observed) {
    constexpr auto rule = "etcd.history";
    std::uint64_t had = 0;
    auto const reach = observed.reaches->find(name);
    if (reach != observed.reaches->end() && reach->second.contact)
        had = reach->second.contact->fence;
    if (auto const* const part = observed.inventory->find(name))
        had = std::max(had, part->documents.identities->generation.value_or(0));
    auto const revision = std::max(observed.revision, observed.state->revision);
    if (revision == 0 || had <= static_cast<std::uint64_t>(revision)) return std::nullopt;
    return found(CheckResult::failed, rule, name,
                 fmt::format("it refuses what is older than revision {}, and etcd is at {}: etcd "
                             "was restored from a backup",
                             had, revision),
                 {},
                 "restore etcd with a revision above the highest that a host has had (etcdutl "
                 "snapshot restore --bump-revision), or have each host leave and join again");
}

}  // namespace

Finding found(CheckResult result, std::string rule, std::string subject, std::string detail,
              std::vector<std::string> commands, std::string note) {
    Finding finding{std::move(rule), std::move(subject), result, std::move(detail)};
    if (is_bad(finding)) finding.remedy = Remedy{std::move(commands), BlastRadius::none, note};
    return finding;
}

std::vector<Finding> judge_replicas(Observed const& observed) {
    std::vector<Finding> all{judge_presence(*observed.state), judge_scheduler(*observed.state)};
    for (auto const& one : observed.certificates)
        all.push_back(judge_certificate(one, observed.now));
    return all;
}

std::vector<Finding> judge_hosts(Observed const& observed) {
    std::vector<Finding> all;
    auto const& hosts = *observed.state->hosts;
    auto const& reaches = *observed.reaches;
    for (auto const& [name, stored] : hosts)
        for (auto& one :
             {judge_trust(name, stored.record), judge_fence(name, stored.record, reaches),
              judge_reach(name, stored.record, reaches),
              judge_joining(name, stored.record, observed.now), judge_history(name, observed)})
            if (one) all.push_back(*one);
    if (hosts.empty())
        return {found(CheckResult::not_applicable, "hosts.reached", "",
                      "no host has joined this fleet")};
    if (all.empty())
        all.push_back(found(CheckResult::ok, "hosts.reached", "",
                            fmt::format("{} hosts, each as the fleet knows it", hosts.size())));
    return all;
}

CheckReport judge(Observed const& observed) {
    CheckReport report{CheckedMachine::fleet, observed.now, "", judge_etcd(observed)};
    for (auto const& more : {judge_replicas(observed), judge_hosts(observed)})
        report.findings.insert(report.findings.end(), more.begin(), more.end());
    return report;
}

}  // namespace vfmgr::fleet
