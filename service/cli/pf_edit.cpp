// SPDX-License-Identifier: Apache-2.0
#include "service/cli/pf_edit.hpp"

#include <algorithm>

namespace vfmgr {

PfSpec edit(PfSpec spec, PfEdit const& desired) {
    if (desired.num_vfs) spec.num_vfs = desired.num_vfs;
    if (desired.mode) spec.mode = *desired.mode;
    if (desired.vf_driver) spec.vf_driver = desired.vf_driver;
    if (desired.vf_driver == "none") spec.vf_driver.reset();
    if (desired.labels) spec.labels = *desired.labels;
    return spec;
}

PfSpec edit(PfSpec spec, std::uint16_t vf, NamedSettings const& settings) {
    auto& all = spec.free_vfs;
    std::ranges::sort(all, {}, &FreeVf::index);  // others may write them in any order
    auto at = std::ranges::lower_bound(all, vf, {}, &FreeVf::index);
    if (at == all.end() || at->index != vf) at = all.insert(at, {vf, {}});
    at->settings = overlay(at->settings, settings.set);
    for_each_member([&](VfAttribute attribute, auto member) {
        if (std::ranges::find(settings.unset, attribute) != settings.unset.end())
            (at->settings.*member).reset();
    });
    if (empty(at->settings)) all.erase(at);
    return spec;
}

}  // namespace vfmgr
