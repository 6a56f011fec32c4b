// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/gpu_mr.hpp"

#include <fmt/format.h>

#include <bit>
#include <cerrno>

#include "guest-tools/gpu/dma_buf.hpp"
#include "guest-tools/verify/faults.hpp"

namespace vfmgr::guest::gpu {

// Closes the descriptor once the NIC has registered the memory.
Result<verify::VerbsMr> register_dma_buf(ibv_pd* pd, GpuContext const& context, GpuRange range,
                                         int access) {
    VFMGR_TRY(auto const made, export_dma_buf(context, range));
    verify::VerbsMr mr(ibv_reg_dmabuf_mr(pd, made.range.offset, range.bytes, range.address,
                                         made.descriptor.get(), access));
    if (mr) return mr;
    return fail(verify::verbs_error(
        pd->context,
        fmt::format("{} bytes of the GPU can't be registered as a DMA-BUF", range.bytes),
        "ibv_reg_dmabuf_mr", errno));
}

Result<verify::VerbsMr> register_peermem(ibv_pd* pd, GpuRange range, int access) {
    verify::VerbsMr mr(ibv_reg_mr(pd, std::bit_cast<void*>(range.address), range.bytes, access));
    if (mr) return mr;
    return fail(verify::verbs_error(
        pd->context,
        fmt::format("{} bytes of the GPU can't be registered by their address", range.bytes),
        "ibv_reg_mr", errno));
}

}  // namespace vfmgr::guest::gpu
