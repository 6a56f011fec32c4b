// SPDX-License-Identifier: Apache-2.0
// What a fake does wrong on request: the n-th perform() fails or the process "dies" there. A value
// that the test sets before it starts.
#pragma once

#include <cstddef>
#include <optional>

namespace vfmgr {

// halfway: in steps with several parts (SetNumVfs, ConfigureVfs, BindVfs, Attach and Detach of live
// and config) the first part happened; other steps treat it as `before`.
enum class FaultPoint { before, halfway, after };

struct Fault {
    std::size_t call = 0;  // counts calls of perform() from 0
    FaultPoint point = FaultPoint::before;
    bool operator==(Fault const&) const = default;
};

// Thrown where the process would be killed: vfmgr must not catch it.
struct CrashNow {
    std::size_t call = 0;
    FaultPoint point = FaultPoint::before;
};

}  // namespace vfmgr
