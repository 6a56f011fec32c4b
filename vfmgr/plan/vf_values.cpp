// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/vf_values.hpp"

namespace vfmgr {
namespace {

// The one list of members for code that treats them alike.
template <class F>
void for_each_member(F f) {
    f(&VfSpec::mac);
    f(&VfSpec::vlan);
    f(&VfSpec::spoofchk);
    f(&VfSpec::trust);
    f(&VfSpec::link_state);
    f(&VfSpec::min_tx_rate_mbps);
    f(&VfSpec::max_tx_rate_mbps);
    f(&VfSpec::node_guid);
    f(&VfSpec::port_guid);
}

}  // namespace

VfSpec only_members_of(VfSpec const& mask, VfSpec values) {
    for_each_member([&](auto member) {
        if (!(mask.*member)) (values.*member).reset();
    });
    return values;
}

VfSpec differing(VfSpec want, VfSpec const& now) {
    for_each_member([&](auto member) {
        if (want.*member == now.*member) (want.*member).reset();
    });
    return want;
}

}  // namespace vfmgr
