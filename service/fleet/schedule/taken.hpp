// SPDX-License-Identifier: Apache-2.0
// What the leader has decided, and hosts have not reported yet: the next decision must not choose
// the same VFs. Values; any thread, owned by who decides.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/addresses.hpp"

namespace vfmgr::fleet {

// So many VFs of that PF.
struct RailShare {
    PciAddress pf;
    std::uint16_t vfs = 0;
    bool operator==(RailShare const&) const = default;
};

struct Decision {
    std::string host;
    std::string rack;     // of the host
    std::string network;  // empty: none, so no addresses are used
    std::string group;    // FleetReservationSpec::same_rack; empty: none
    std::vector<RailShare> vfs;
    std::vector<PciAddress> gpus;
    bool operator==(Decision const&) const = default;
};

// Of one host, all decisions together.
struct TakenOfHost {
    std::uint32_t vfs = 0;
    std::map<PciAddress, std::uint16_t> of_pfs;
    std::set<PciAddress> gpus;
    std::map<std::string, std::uint32_t> addresses;  // by network
};

class Taken {
  public:
    // `id`: the reservation's name, or the attachment's. An earlier decision of that id is
    // replaced.
    void add(std::string const& id, Decision decision);
    // The host has reported it, or refused it, or it was given up.
    void forget(std::string const& id);

    // nullptr: nothing. Valid until the next add() or forget().
    [[nodiscard]] TakenOfHost const* of(std::string_view host) const;
    // Where a decision put a reservation of that group.
    [[nodiscard]] std::optional<std::string> rack_of_group(std::string_view group) const;
    [[nodiscard]] std::size_t size() const { return decisions_.size(); }

  private:
    void sum_up(std::string const& host);

    std::map<std::string, Decision> decisions_;
    std::map<std::string, TakenOfHost, std::less<>> hosts_;
};

}  // namespace vfmgr::fleet
