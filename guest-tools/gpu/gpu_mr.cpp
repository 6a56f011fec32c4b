// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/gpu_mr.hpp"

#include <fmt/format.h>

#include <bit>
#include <cerrno>

#include "guest-tools/gpu/dma_buf.hpp"
#include "guest-tools/verify/faults.hpp"

namespace vfmgr::guest::gpu {

// Closes the descriptor once the NIC has registered the memory.
Result<verify::VerbsMr> register_dma_buf(ibv_pd* domain, GpuContext const& context, GpuRange range,
                                         int access) {
    VFMGR_TRY(auto const made, export_dma_buf(context, range));
    verify::VerbsMr mr(ibv_reg_dmabuf_mr(domain, made.range.offset, range.bytes, range.address,
                                         made.descriptor.get(), access));
    if (mr) return mr;
    return fail(verify::verbs_error(
        domain->context,
        fmt::format("{} bytes of the GPU can't be registered as a DMA-BUF", range.bytes),
        "ibv_reg_dmabuf_mr", errno));
}

Result<verify::VerbsMr> register_peermem(ibv_pd* domain, GpuRange range, int access) {
    verify::VerbsMr mr(
        ibv_reg_mr(domain, std::bit_cast<void*>(range.address), range.bytes, access));
    if (mr) return mr;
    return fail(verify::verbs_error(
        domain->context,
        fmt::format("{} bytes of the GPU can't be registered by their address", range.bytes),
        "ibv_reg_mr", errno));
}

}  // namespace vfmgr::guest::gpu
