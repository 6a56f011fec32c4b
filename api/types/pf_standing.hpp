// SPDX-License-Identifier: Apache-2.0
// Whether what answers at a PF's address is that PF. A value.
#pragma once

#include "api/types/enum_names.hpp"

namespace vfmgr {

enum class Standing {
    here,            // it is at its address, or nothing says that it is not
    driver_unbound,  // a PCI function is there that no driver serves: nothing ends
    renumbered,      // another device is at its address, or it answers at another one
    gone,            // it is nowhere on this host
    unknown          // it could not be looked at
};
template <>
inline constexpr std::array<EnumName<Standing>, 5> enum_names<Standing> = {
    {{Standing::here, "here"},
     {Standing::driver_unbound, "driver_unbound"},
     {Standing::renumbered, "renumbered"},
     {Standing::gone, "gone"},
     {Standing::unknown, "unknown"}}};

}  // namespace vfmgr
