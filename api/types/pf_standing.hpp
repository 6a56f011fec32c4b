// SPDX-License-Identifier: Apache-2.0
// States whether the device at a PF's address is that PF. A value.
#pragma once

#include "api/types/enum_names.hpp"

namespace vfmgr {

enum class Standing {
    here,            // the PF is at its address, or no evidence contradicts it
    driver_unbound,  // a function is at its address without a driver; nothing ends
    renumbered,      // another device is at its address, or the PF is at another address
    gone,            // the PF is nowhere on this host
    unknown          // the PF could not be observed
};
template <>
inline constexpr std::array<EnumName<Standing>, 5> enum_names<Standing> = {
    {{Standing::here, "here"},
     {Standing::driver_unbound, "driver_unbound"},
     {Standing::renumbered, "renumbered"},
     {Standing::gone, "gone"},
     {Standing::unknown, "unknown"}}};

}  // namespace vfmgr
