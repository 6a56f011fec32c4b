// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/nccl_library.hpp"

#include <fmt/format.h>

#include "guest-tools/verify/symbols.hpp"

namespace vfmgr::guest::gpu {
namespace {

Error no_nccl(std::string const& library) {
    char const* const why = ::dlerror();
    Error error{Problem::not_found,
                fmt::format("{} can't be opened, so no all-reduce was run", library),
                "install NCCL from NVIDIA's CUDA repository: libnccl2 on Debian and Ubuntu, "
                "libnccl on RHEL; or name the folder of a Python environment's NCCL: "
                "LD_LIBRARY_PATH=SITE-PACKAGES/nvidia/nccl/lib vf-guest gpu test"};
    error.causes.push_back({"dlopen", "", why ? why : "no reason given"});
    return error;
}

}  // namespace

std::string nccl_version_text(int code) {
    int const major = code < 10'000 ? 1000 : 10'000;
    return fmt::format("{}.{}.{}", code / major, code % major / 100, code % 100);
}

Result<std::unique_ptr<Nccl const>> Nccl::open(std::string const& library) {
    auto* const opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!opened) return fail(no_nccl(library));
    auto nccl = std::make_unique<Nccl>();
    auto& calls = nccl->calls;
    verify::Symbols symbols(opened);
    symbols.need(calls.ncclGetVersion, "ncclGetVersion")
        .need(calls.ncclGetErrorString, "ncclGetErrorString")
        .maybe(calls.ncclGetLastError, "ncclGetLastError")
        .need(calls.ncclCommInitAll, "ncclCommInitAll")
        .need(calls.ncclCommDestroy, "ncclCommDestroy")
        .need(calls.ncclCommAbort, "ncclCommAbort")
        .need(calls.ncclCommGetAsyncError, "ncclCommGetAsyncError")
        .need(calls.ncclGroupStart, "ncclGroupStart")
        .need(calls.ncclGroupEnd, "ncclGroupEnd")
        .need(calls.ncclAllReduce, "ncclAllReduce");
    int code = 0;
    if (calls.ncclGetVersion && calls.ncclGetVersion(&code) == nccl_success)
        nccl->version = nccl_version_text(code);
    if (!symbols.missing().empty())
        return fail(Problem::unsupported,
                    fmt::format("NCCL {} ({}) is too old for this test: it has no {}",
                                nccl->version, library, symbols.missing()),
                    "install NCCL 2.4 or newer");
    return nccl;
}

Error Nccl::refusal(char const* call, NcclResult result) const {
    Error error{Problem::kernel_refused, fmt::format("NCCL {} refused {}", version, call),
                "run NCCL_DEBUG=INFO vf-guest gpu test to find out what NCCL did before; check the "
                "GPUs: dmesg | grep NVRM; nvidia-smi"};
    if (result == nccl_system_error)
        error.remedy =
            "run NCCL_DEBUG=INFO vf-guest gpu test, which names the call that failed; in a "
            "container, give it more shared memory (--shm-size=1g --ulimit memlock=-1)";
    auto const* const text = calls.ncclGetErrorString(result);
    error.causes.push_back(
        {"error " + std::to_string(result), "", text ? text : "no reason given"});
    auto const* const last = calls.ncclGetLastError ? calls.ncclGetLastError(nullptr) : nullptr;
    if (last && *last != '\0') error.causes.push_back({"NCCL's last error", "", last});
    return error;
}

Result<void> Nccl::done(char const* call, NcclResult result) const {
    if (result == nccl_success) return {};
    return fail(refusal(call, result));
}

}  // namespace vfmgr::guest::gpu
