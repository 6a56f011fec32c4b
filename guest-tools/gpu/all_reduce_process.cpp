// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "api/types/json.hpp"
#include "api/types/text.hpp"
#include "guest-tools/gpu/all_reduce.hpp"
#include "guest-tools/gpu/gpu_bench.hpp"
#include "vfmgr/proof/host/judge.hpp"
#include "vfmgr/proof/interop/child.hpp"

namespace vfmgr::guest::gpu {
namespace {

constexpr std::size_t sentence_max = 1500;  // each of two in one message

TestResult one_gpu() {
    std::string detail = "an all-reduce needs two GPUs, but CUDA lists one";
    if (char const* const visible = std::getenv("CUDA_VISIBLE_DEVICES"))
        detail += fmt::format(" (CUDA_VISIBLE_DEVICES is '{}')", visible);
    return not_applicable(std::move(detail));
}

TestResult hangs(std::string const& step, std::chrono::seconds limit) {
    return failed(
        fmt::format("it hangs: {} did not finish within {} s", step, limit.count()),
        "run NCCL_DEBUG=INFO vf-guest gpu test to find out where. If NCCL_P2P_DISABLE=1 vf-guest "
        "gpu test passes, the direct path between the GPUs is at fault: ACS or an IOMMU redirects "
        "it (vf-guest doctor), or NVLink (nvidia-smi nvlink -s; dmesg | grep NVRM). If it hangs at "
        "the communicators, name a network device that works: NCCL_SOCKET_IFNAME=lo");
}

// Truncates the sentences to fit one message: the end of a longer one would not be read.
void report_result(TestResult result) {
    result.detail = verify::printable(result.detail, sentence_max);
    result.remedy = verify::printable(result.remedy, sentence_max);
    interop::report_to_parent(to_json_text(result));
    // Frees nothing: that may block forever, and the end of the process frees it anyway.
    std::_Exit(0);
}

Result<TestResult> ask_process(Cuda const& cuda, AllReduceOrder const& order) {
    int gpus = 0;
    VFMGR_CHECK(cuda.run(cuda.calls.cuDeviceGetCount, &gpus));
    if (gpus < 2) return one_gpu();
    auto program = order.program;
    program.push_back(std::to_string(order.bytes_max));
    VFMGR_TRY(auto const child,
              interop::Child::start(std::move(program), "the all-reduce process"));
    std::string step = "starting";
    while (true) {
        auto const until = std::chrono::steady_clock::now() + order.step_max;
        auto message = child->receive(until);
        if (!message && std::chrono::steady_clock::now() >= until)
            return hangs(step, order.step_max);
        if (!message)
            return failed(
                fmt::format("the all-reduce process ended with {} during: {}", child->how_ended(),
                            step),
                "run NCCL_DEBUG=INFO vf-guest gpu test to find out what NCCL did before; leave "
                "NCCL's plugins out with NCCL_NET_PLUGIN=none NCCL_TUNER_PLUGIN=none");
        if (!message->starts_with('{')) {
            step = std::move(*message);
            continue;
        }
        return or_failed(from_json_text<TestResult>(*message));
    }
}

}  // namespace

TestResult test_all_reduce(Cuda const& cuda, AllReduceOrder const& order) {
    return or_failed(ask_process(cuda, order));
}

int run_all_reduce(std::vector<std::string> const& words) {
    auto const bytes = words.size() == 1 ? parse_digits(words[0], {10, 1, 12}) : std::nullopt;
    if (!bytes) return 2;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Keeps NCCL's output out of standard output, where it would land inside a document.
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    // Makes calls block: calls that return early are for programs that have other work to do.
    ::setenv("NCCL_COMM_BLOCKING", "1", 1);
    interop::report_to_parent(std::string("asking ") + cuda_library);
    auto const cuda = Cuda::open();
    if (!cuda) report_result(not_passed(Verdict::fail, cuda.error()));
    auto const gpus = list_gpus(**cuda);
    if (!gpus) report_result(not_passed(Verdict::fail, gpus.error()));
    all_reduce(**cuda, *gpus, *bytes,
               {[](std::string const& step) { interop::report_to_parent(step); }, report_result});
    return 0;
}

}  // namespace vfmgr::guest::gpu
