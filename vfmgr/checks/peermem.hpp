// SPDX-License-Identifier: Apache-2.0
// How an NVIDIA GPU's memory can reach a NIC here: by DMA-BUF, or by nvidia-peermem; and why the
// latter would not load, found without loading anything
// (guest-tools/gpu/GPUDIRECT.md#why-it-does-not-load). Values; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/check.hpp"
#include "vfmgr/machine/machine.hpp"

namespace vfmgr::checks {

// GPUs that this machine itself uses: not those attached to VMs.
[[nodiscard]] std::vector<PciDevice const*> own_gpus(Machine const& machine);
// True if a NIC here can do RDMA to them: a ConnectX function, or hardware with an RDMA device.
[[nodiscard]] bool has_rdma_nic(Machine const& machine);

// True if one of them has no display, like data-centre GPUs: it offers GPUDirect. A GPU with a
// display may be a GeForce, which does not (a limit of the product, no fault); only CUDA's
// attributes show it.
[[nodiscard]] bool surely_offers_gpudirect(Machine const& machine);

// The first of NVIDIA's drivers with nvidia-peermem.
inline constexpr int branch_with_peermem = 470;

struct NvidiaDriver {
    std::string version;  // "580.65.06"
    int branch = 0;       // 580
    bool open = false;    // the kernel half: open, or proprietary
    bool operator==(NvidiaDriver const&) const = default;
};
[[nodiscard]] std::optional<NvidiaDriver> parse_nvidia_driver(std::string_view proc_version);
// Returns the loaded driver.
[[nodiscard]] std::optional<NvidiaDriver> nvidia_driver(Machine const& machine);

enum class Can { yes, no, unknown };
struct DmaBuf {
    Can can = Can::unknown;
    std::string why;  // a clause, not a sentence
};
[[nodiscard]] DmaBuf judge_dma_buf(Machine const& machine);

enum class PeermemBuild {
    absent,         // there is no such module
    without_peers,  // built where no RDMA stack offered peer memory: it only returns EINVAL
    other_stack,    // built against another RDMA stack: its symbols differ
    fits,           // nothing shows that it would not load
    unknown,        //
};
struct Peermem {
    bool loaded = false;
    std::optional<bool> offered;  // the RDMA stack has ib_register_peer_memory_client
    PeermemBuild build = PeermemBuild::unknown;
    std::vector<Evidence> evidence;
};
[[nodiscard]] Peermem examine_peermem(Machine const& machine);
// NVIDIA's modules are built at boot, by Fedora's and RHEL's akmods.
[[nodiscard]] bool is_built_at_boot(Machine const& machine);
// Returns the commands that build NVIDIA's modules again in the way that this machine has them:
// dpkg-reconfigure, DKMS or akmods; without any of these, the advice to install them again.
[[nodiscard]] Remedy rebuild_nvidia(Machine const& machine);

}  // namespace vfmgr::checks
