// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/vf_values.hpp"

namespace vfmgr {

bool mac_holds(VfSpec const& desired, VfSpec const& reported) {
    if (!desired.mac || !reported.mac) return false;
    return *reported.mac == *desired.mac || (desired.mac->zero() && *reported.mac == stand_in_mac);
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

VfSpec differing(VfSpec desired, VfSpec const& now) {
    for_each_member([&](VfAttribute, auto member) {
        if (desired.*member == now.*member) (desired.*member).reset();
    });
    if (mac_holds(desired, now)) desired.mac.reset();
    return desired;
}

bool holds(VfSpec const& desired, VfSpec const& now) {
    bool all = true;
    for_each_member([&](VfAttribute attribute, auto member) {
        if (!(desired.*member) || desired.*member == now.*member) return;
        all = all && attribute == VfAttribute::mac && mac_holds(desired, now);
    });
    return all;
}

}  // namespace vfmgr
