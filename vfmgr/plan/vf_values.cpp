// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/vf_values.hpp"

namespace vfmgr {

bool same_mac(MacAddress const& want, MacAddress const& reported) {
    return reported == want || (want.zero() && reported == stand_in_mac);
}

VfSpec only_members_of(VfSpec const& mask, VfSpec values) {
    for_each_member([&](VfAttribute, auto member) {
        if (!(mask.*member)) (values.*member).reset();
    });
    return values;
}

VfSpec differing(VfSpec want, VfSpec const& now) {
    for_each_member([&](VfAttribute, auto member) {
        if (want.*member == now.*member) (want.*member).reset();
    });
    if (want.mac && now.mac && same_mac(*want.mac, *now.mac)) want.mac.reset();
    return want;
}

}  // namespace vfmgr
