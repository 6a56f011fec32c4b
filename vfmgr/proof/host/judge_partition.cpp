// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/host/judge_partition.hpp"

#include <fmt/format.h>

#include "vfmgr/proof/reachability.hpp"
#include "vfmgr/rdma/subnet.hpp"

namespace vfmgr::verify {
namespace {

constexpr std::size_t pkeys_shown_max = 200;

std::string line_remedy(Pkey const& pkey, Guid const& port, std::uint32_t mtu) {
    return fmt::format(
        "add this line to the subnet manager's partitions.conf and send opensm SIGHUP: {}",
        partition_line(pkey, port, mtu));
}

std::string reported_pkeys(GuestReport const& report) {
    auto const found = report.facts.find("pkeys");
    return found == report.facts.end() ? std::string("none that it reports")
                                       : printable(found->second, pkeys_shown_max);
}

std::optional<Warning> wrong_at_host(SessionPermit const& permit, SessionFacts const& facts) {
    Pkey const needed{permit.pkey->key, PkeyMembership::full};
    if (*facts.host_pkey == table_entry(needed)) return std::nullopt;
    bool const limited = reach_each_other(*facts.host_pkey, table_entry(needed));
    return Warning{"partition",
                   limited ? fmt::format("the host's port is a limited member of partition 0x{:04x}"
                                         ", so it does not reach limited ones",
                                         needed.key)
                           : fmt::format("the host's port is not in partition 0x{:04x}: its P_Keys "
                                         "are {}",
                                         needed.key, pkeys_text(facts.host_pkeys)),
                   line_remedy(needed, permit.host_guid.value_or(Guid{}), permit.mtu)};
}

std::optional<Warning> wrong_at_guest(SessionPermit const& permit, std::uint16_t pkey,
                                      std::string const& pkeys) {
    auto const& needed = *permit.pkey;
    if (pkey == table_entry(needed)) return std::nullopt;
    bool const member = ((pkey ^ needed.key) & 0x7fffU) == 0;
    return Warning{"partition",
                   member ? fmt::format("the VM's port is a {} member of partition 0x{:04x}, and "
                                        "{} is expected",
                                        is_full(pkey) ? "full" : "limited", needed.key,
                                        enum_name(needed.membership))
                          : fmt::format("the VM's port is not in partition 0x{:04x}: its P_Keys "
                                        "are {}",
                                        needed.key, pkeys),
                   line_remedy(needed, *permit.vf_guid, permit.mtu)};
}

// Without an expectation of the network's, the P_Keys must only fit each other.
std::optional<Warning> apart(SessionFacts const& facts) {
    if (reach_each_other(*facts.host_pkey, *facts.guest_pkey)) return std::nullopt;
    return Warning{
        "partition",
        fmt::format("no packet passes between the P_Keys of host and VM, 0x{:04x} and 0x{:04x}: "
                    "they need one partition, and one of both must be a full member",
                    *facts.host_pkey, *facts.guest_pkey),
        "name the partition on the network (vfctl network set NETWORK --pkey), and give its lines "
        "to the subnet manager: vfctl ib partitions"};
}

}  // namespace

std::optional<TestResult> judge_partition(SessionPermit const& permit, SessionFacts const& facts,
                                          GuestReport const& report) {
    if (!permit.vf_guid || !facts.host_pkey || !facts.guest_pkey) return std::nullopt;
    TestResult result;
    result.name = "partition";
    result.verdict = Verdict::pass;
    result.by = Judge::host;
    std::optional<Warning> wrong;
    if (permit.pkey) {
        wrong = wrong_at_host(permit, facts);
        if (!wrong) wrong = wrong_at_guest(permit, *facts.guest_pkey, reported_pkeys(report));
    } else {
        wrong = apart(facts);
    }
    if (!wrong) {
        result.detail = fmt::format("P_Key 0x{:04x}", *facts.guest_pkey);
        return result;
    }
    result.verdict = Verdict::fail;
    result.detail = std::move(wrong->detail);
    result.remedy = std::move(wrong->remedy);
    return result;
}

std::optional<Warning> missing_partition(SessionPermit const& permit, GuestReport const& report) {
    auto const found = report.facts.find("pkeys");
    if (!permit.vf_guid || !permit.pkey || found == report.facts.end()) return std::nullopt;
    auto const entry = fmt::format("0x{:04x}", table_entry(*permit.pkey));
    if (found->second.find(entry) != std::string::npos) return std::nullopt;
    auto const other = fmt::format("0x{:04x}", table_entry(*permit.pkey) ^ 0x8000U);
    bool const member = found->second.find(other) != std::string::npos;
    auto const pkey = static_cast<std::uint16_t>(member ? table_entry(*permit.pkey) ^ 0x8000U : 0U);
    return wrong_at_guest(permit, pkey, reported_pkeys(report));
}

}  // namespace vfmgr::verify
