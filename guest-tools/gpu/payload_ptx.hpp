// SPDX-License-Identifier: Apache-2.0
// The kernels vfmgr_fill and vfmgr_check as PTX, which NVIDIA's driver compiles for its GPU: the
// content of payload.ptx. A constant; any thread.
#pragma once

namespace vfmgr::guest::gpu {

extern char const* const payload_ptx;
inline constexpr unsigned payload_threads = 256;  // per block

}  // namespace vfmgr::guest::gpu
