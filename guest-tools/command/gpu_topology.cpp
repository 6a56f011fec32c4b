// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "api/os/file.hpp"
#include "guest-tools/command/gpu.hpp"
#include "guest-tools/command/print.hpp"
#include "guest-tools/gpu/find_gpus.hpp"
#include "guest-tools/gpu/load_peermem.hpp"
#include "guest-tools/gpu/topology.hpp"
#include "guest-tools/net/host_client.hpp"

namespace vfmgr::guest::command {
namespace {

// Returns the CPU mask of each NUMA node, in order.
std::vector<std::string> cpus_of_nodes() {
    std::vector<std::string> masks;
    for (int node = 0;; ++node) {
        auto mask =
            read_file(fmt::format("/sys/devices/system/node/node{}/cpumap", node)).value_or("");
        if (mask.empty()) return masks;
        std::erase(mask, '\n');
        masks.push_back(std::move(mask));
    }
}

// Reads them in NCCL's order: the environment first, then the user's file, then the machine's.
gpu::NcclState nccl_state(std::string const& current) {
    gpu::NcclState state;
    for (char** one = environ; *one; ++one) gpu::add_nccl_file(*one, state.settings);
    if (auto const* const home = std::getenv("HOME"))
        gpu::add_nccl_file(read_file(std::filesystem::path(home) / ".nccl.conf").value_or(""),
                           state.settings);
    gpu::add_nccl_file(read_file("/etc/nccl.conf").value_or(""), state.settings);
    auto const named = state.settings.find("NCCL_TOPO_FILE");
    std::string const file =
        named == state.settings.end() ? gpu::default_topology_file : named->second;
    auto const text = read_file(file).value_or("");
    if (text.empty()) return state;
    state.file = file;
    state.file_is_current = text == current;
    return state;
}

// Only a VM has a host to query. Without its answer, the rest is still shown.
std::optional<HostTopology> ask_host(Options const& options, checks::Machine const& machine) {
    if (machine.kind != CheckedMachine::guest) return std::nullopt;
    auto print_error = HostClient(options.host).topology();
    if (print_error) return std::move(*print_error);
    warn(fmt::format("the host did not report where its GPUs and NICs are: {}",
                     detail_with_causes(print_error.error())));
    return std::nullopt;
}

int write_file(std::string const& file, std::string const& text) {
    constexpr mode_t mode = 0644;
    if (text.empty())
        return print_error({Problem::unavailable,
                            "there is nothing to write: the host did not report where a GPU and a "
                            "NIC of this VM are",
                            "run it as root in a VM with a GPU and a VF that vfmgrd attached"});
    if (auto const written = replace_file(file, text, mode); !written) {
        auto error = written.error();
        error.detail = fmt::format("{} can't be written", file);
        error.remedy = "choose a folder that exists, and run it as root";
        return print_error(error);
    }
    print_text(
        fmt::format("{} holds what the host reported; NCCL reads it with this line in "
                    "/etc/nccl.conf:\n"
                    "NCCL_TOPO_FILE={}\n",
                    file, file));
    return 0;
}

}  // namespace

int show_topology(Options const& options) {
    auto const facts = gpu::collect_facts({});
    auto const machine = checks::read_machine(facts);
    auto const host = ask_host(options, machine);
    auto const functions = host ? gpu::placed(machine, *host) : std::vector<gpu::PlacedFunction>();
    auto const text =
        functions.empty() ? std::string() : gpu::topology_file(functions, cpus_of_nodes());
    if (!options.gpu.topology_file.empty()) return write_file(options.gpu.topology_file, text);
    auto const found = gpu::find_gpus(machine);
    if (!found) return print_error(found.error());
    auto const notes = host ? host->notes : std::vector<std::string>();
    auto const pairs = gpu::judge(machine, found->infos, host, nccl_state(text));
    if (options.output == Output::json)
        print_json({{"pairs", pairs}, {"notes", notes}});
    else
        print_text(gpu::describe(pairs, notes));
    return 0;
}

}  // namespace vfmgr::guest::command
