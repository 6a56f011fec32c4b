// SPDX-License-Identifier: Apache-2.0
#include "service/cli/pf_edit.hpp"

namespace vfmgr {

PfSpec edit(PfSpec spec, PfEdit const& desired) {
    if (desired.num_vfs) spec.num_vfs = desired.num_vfs;
    if (desired.mode) spec.mode = *desired.mode;
    if (desired.vf_driver) spec.vf_driver = desired.vf_driver;
    if (desired.vf_driver == "none") spec.vf_driver.reset();
    if (desired.labels) spec.labels = *desired.labels;
    return spec;
}

}  // namespace vfmgr
