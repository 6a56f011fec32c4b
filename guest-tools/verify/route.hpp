// SPDX-License-Identifier: Apache-2.0
// The way from a NIC into a GPU's memory. Values; any thread.
#pragma once

#include "api/types/enum_names.hpp"

namespace vfmgr::verify {

enum class Route {
    dma_buf,      // ibv_reg_dmabuf_mr of the GPU's memory
    dma_buf_vmm,  // ibv_reg_dmabuf_mr of its virtual memory, cuMemCreate and cuMemMap
    peermem,      // ibv_reg_mr of it, with nvidia-peermem or its older variants
    staged,       // none of these: main memory, copied
};

// For people.
[[nodiscard]] constexpr char const* route_text(Route route) {
    constexpr std::array texts{"DMA-BUF", "DMA-BUF of virtual memory", "nvidia-peermem",
                               "staged through main memory"};
    return texts.at(static_cast<std::size_t>(route));
}

}  // namespace vfmgr::verify

template <>
inline constexpr std::array<vfmgr::EnumName<vfmgr::verify::Route>, 4>
    vfmgr::enum_names<vfmgr::verify::Route> = {{{vfmgr::verify::Route::dma_buf, "dma_buf"},
                                                {vfmgr::verify::Route::dma_buf_vmm, "dma_buf_vmm"},
                                                {vfmgr::verify::Route::peermem, "peermem"},
                                                {vfmgr::verify::Route::staged, "staged"}}};
