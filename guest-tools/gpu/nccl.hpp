// SPDX-License-Identifier: Apache-2.0
// Declares what vf-guest uses of libnccl.so.2: it is built without the library and opens it at run
// time. Names and numbers are those of NVIDIA's nccl.h, which NCCL 2 only adds to. Its cudaStream_t
// is CUstream, and its device numbers follow the order in which CUDA lists. Values.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "api/types/problem.hpp"
#include "api/types/topology.hpp"
#include "guest-tools/gpu/cuda_abi.hpp"

namespace vfmgr::guest::gpu {

using NcclResult = int;  // ncclResult_t
using NcclComm = struct ncclComm*;

inline constexpr NcclResult nccl_success = 0;
inline constexpr NcclResult nccl_system_error = 2;
inline constexpr NcclResult nccl_in_progress = 7;  // of non-blocking communicators
inline constexpr int nccl_float32 = 7;             // ncclDataType_t
inline constexpr int nccl_sum = 0;                 // ncclRedOp_t

// Each member holds the symbol of its name.
struct NcclCalls {
    Library library;
    LibraryFunction<int*> ncclGetVersion = library.need("ncclGetVersion");
    char const* (*ncclGetErrorString)(NcclResult) = library.need("ncclGetErrorString");
    // Since 2.13, else null.
    char const* (*ncclGetLastError)(NcclComm) = library.maybe("ncclGetLastError");

    LibraryFunction<NcclComm*, int, int const*> ncclCommInitAll = library.need("ncclCommInitAll");
    LibraryFunction<NcclComm> ncclCommDestroy = library.need("ncclCommDestroy");
    // Since 2.4.
    LibraryFunction<NcclComm> ncclCommAbort = library.need("ncclCommAbort");
    LibraryFunction<NcclComm, NcclResult*> ncclCommGetAsyncError =
        library.need("ncclCommGetAsyncError");

    LibraryFunction<> ncclGroupStart = library.need("ncclGroupStart");
    LibraryFunction<> ncclGroupEnd = library.need("ncclGroupEnd");
    LibraryFunction<void const*, void*, std::size_t, int, int, NcclComm, CudaStream> ncclAllReduce =
        library.need("ncclAllReduce");
};

// NCCL, opened at run time and never closed: it has threads of its own. It uses the primary
// contexts of the GPUs, as GpuContext does. Owned by the process of the all-reduce; one thread.

inline constexpr char const* nccl_library = "libnccl.so.2";

struct Nccl {
    // Fails with a remedy where the library is missing or too old.
    [[nodiscard]] static Result<std::unique_ptr<Nccl const>> open(std::string const& library);

    NcclCalls calls;
    std::string version;  // "2.27.3"

    // Describes a call that returned anything but 0: NCCL's explanation, and the remedy.
    [[nodiscard]] Error refusal(char const* call, NcclResult result) const;
    [[nodiscard]] Result<void> done(char const* call, NcclResult result) const;
    template <class... A>
    [[nodiscard]] Result<void> run(LibraryFunction<A...> const& call,
                                   std::type_identity_t<A>... arguments) const {
        return done(call.name(), call(arguments...));
    }
};

// "2.27.3" for 22703, "2.8.4" for 2804: NCCL_VERSION_CODE counts differently since 2.9.
[[nodiscard]] std::string nccl_version_text(int code);

// The parts of NCCL that decide about GPUDirect: its settings, its distance rule, and the file that
// describes to it a host's PCI tree, which the VM does not show (GPUDIRECT.md#nccl). Pure.

// NCCL_… by name: from the environment, else from ~/.nccl.conf, else from /etc/nccl.conf. A file
// that NCCL_CONF_FILE names in place of ~/.nccl.conf is not read.
using NcclSettings = std::map<std::string, std::string, std::less<>>;
// Adds a file's lines "NCCL_NAME=VALUE"; lines that begin with "#" are comments. Existing values
// stay.
void add_nccl_file(std::string_view text, NcclSettings& settings);

// Returns the farthest distance at which NCCL uses GPUDirect; PXB unless NCCL_NET_GDR_LEVEL sets
// another. An unknown value is an error, because NCCL ignores it. So are NVL, NVB, C2C, P2C and
// PXN, which NCCL knows: none of them is a PCI distance.
[[nodiscard]] Result<PciDistance> gdr_level(NcclSettings const& settings);
// Returns the distance between the two by NCCL's rule: PIX, PXB, PHB or SYS. A Broadcom switch that
// shows two levels counts as one switch (ncclTopoFlattenBcmSwitches), where `nvidia-smi topo`
// reports PXB. Host bridges of one NUMA node belong to one CPU, PHB; all functions without a known
// node belong to another CPU.
[[nodiscard]] PciDistance nccl_distance(PciPlace const& one, PciPlace const& other);
[[nodiscard]] bool within(PciDistance as_nccl, PciDistance level);

// Where NCCL reads such a file when NCCL_TOPO_FILE names none.
inline constexpr char const* default_topology_file =
    "/var/run/nvidia-topologyd/virtualTopology.xml";

// A GPU or NIC of this VM, and its place on the host.
struct PlacedFunction {
    PciAddress here;
    std::uint32_t class_code = 0;  // 0x030200
    PciPlace host;
};
// `affinities` are the VM's CPUs by NUMA node, masks of equal length as in sysfs ("ffff,ffffffff").
// Unless the VM has as many nodes as these functions have on the host, each node gets all CPUs; the
// node of functions whose node is unknown always gets all.
[[nodiscard]] std::string topology_file(std::vector<PlacedFunction> const& functions,
                                        std::vector<std::string> const& affinities);

}  // namespace vfmgr::guest::gpu
