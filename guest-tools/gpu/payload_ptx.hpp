// SPDX-License-Identifier: Apache-2.0
// The kernels vfmgr_fill and vfmgr_check, as PTX that NVIDIA's driver compiles for its GPU: what
// payload.ptx says. A constant; any thread.
#pragma once

namespace vfmgr::guest::gpu {

extern char const* const payload_ptx;
inline constexpr unsigned payload_threads = 256;  // of a block

}  // namespace vfmgr::guest::gpu
