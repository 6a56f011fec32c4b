// SPDX-License-Identifier: Apache-2.0
// Which items of all hosts a list has: the filters of its request, all of which must hold, and what
// a tenant may see. Values; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/http.hpp"
#include "api/types/tenant.hpp"
#include "service/fleet/inventory/inventory.hpp"

namespace vfmgr::fleet {

// The lists over all hosts. verifications: the latest run of each attachment.
enum class FleetList { pfs, vfs, vms, attachments, verifications, networks, pools, reservations };

// Chooses hosts. Empty members are no condition.
struct HostFilter {
    std::string host{};
    std::string rack{};
    std::optional<std::pair<std::string, std::string>> label{};

    [[nodiscard]] bool matches(HostEntry const& entry) const;
    // True if all hosts match.
    [[nodiscard]] bool any() const { return host.empty() && rack.empty() && !label; }
};
// The names of its parameters: ?host=h7, ?rack=r2, ?label=key=value.
[[nodiscard]] std::vector<std::string> host_filter_parameters();
[[nodiscard]] Result<HostFilter> read_host_filter(http::Request const& request);

// As those of the host's list of that name; empty members are no condition.
struct ListFilter {
    HostFilter of{};
    std::optional<PciAddress> pf{};
    std::string state{};  // a word of the list's own states
    std::string attachment{};
    std::string vm{};  // name or UUID
    std::string network{};
    std::string pool{};
    std::string reservation{};
    std::optional<Verdict> verdict{};
    Tenant const* viewer = nullptr;  // sees its own only; null: of no tenant, sees everything
};
[[nodiscard]] std::vector<std::string> list_filter_parameters(FleetList list);
[[nodiscard]] Result<ListFilter> read_list_filter(FleetList list, http::Request const& request,
                                                  Tenant const* viewer);

// What the filter needs to know of one host before it judges that host's items. Points into `part`
// and `filter`.
class HostFilterState {
  public:
    HostFilterState(ListFilter const& filter, HostPart const& part);
    // False: none of the host's items of this list can pass.
    [[nodiscard]] bool can_pass(FleetList list) const;

    [[nodiscard]] bool passes(PfFacts const& pf) const;
    [[nodiscard]] bool passes(VfFacts const& vf) const;
    [[nodiscard]] bool passes(VmFacts const& vm) const;
    [[nodiscard]] bool passes(AttachmentFacts const& attachment) const;
    [[nodiscard]] bool passes(NetworkFacts const& network) const;
    [[nodiscard]] bool passes(PoolFacts const& pool) const;
    [[nodiscard]] bool passes(ReservationFacts const& reservation) const;

  private:
    [[nodiscard]] bool needs_attachments() const;

    ListFilter const& filter_;
    std::optional<VfStatus> vf_state_;
    std::optional<VmState> vm_state_;
    std::optional<AttachmentState> attachment_state_;
    // With a filter of VFs by what has them: the ids of attachments that pass, in order.
    std::vector<std::string_view> attachments_;
};

}  // namespace vfmgr::fleet
