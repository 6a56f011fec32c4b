// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/vf_values.hpp"

namespace vfmgr {

bool mac_holds(VfSpec const& wanted, VfSpec const& reported) {
    if (!wanted.mac || !reported.mac) return false;
    return *reported.mac == *wanted.mac || (wanted.mac->zero() && *reported.mac == stand_in_mac);
}

bool names_vfio_driver(std::string_view driver) {
    return driver == "vfio-pci" || driver.ends_with("-vfio-pci") || driver.ends_with("_vfio_pci");
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
    if (mac_holds(want, now)) want.mac.reset();
    return want;
}

bool holds(VfSpec const& want, VfSpec const& now) {
    bool all = true;
    for_each_member([&](VfAttribute attribute, auto member) {
        if (!(want.*member) || want.*member == now.*member) return;
        all = all && attribute == VfAttribute::mac && mac_holds(want, now);
    });
    return all;
}

}  // namespace vfmgr
