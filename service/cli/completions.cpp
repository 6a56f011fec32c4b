// SPDX-License-Identifier: Apache-2.0
#include "service/cli/completions.hpp"

#include <fmt/format.h>

#include "api/os/file.hpp"
#include "api/types/attachment.hpp"
#include "api/types/daemon.hpp"
#include "api/types/firmware.hpp"
#include "api/types/json.hpp"
#include "api/types/network.hpp"
#include "api/types/operation.hpp"
#include "api/types/pf_state.hpp"
#include "api/types/pool.hpp"
#include "api/types/rdma.hpp"
#include "api/types/reservation.hpp"
#include "api/types/tenant.hpp"
#include "api/types/text.hpp"
#include "api/types/vm_info.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/contexts.hpp"
#include "service/cli/show.hpp"
#include "vfmgr/checks/doctor.hpp"

namespace vfmgr {
namespace {

constexpr std::chrono::seconds answer_time_max{2};  // who presses a key does not wait longer
constexpr std::size_t items_max = 2000;             // nor for more pages than these fill

// The completions for one word.
struct Asked {
    std::string word;
    Options options;
    std::vector<Completion> found{};

    void add(std::string value, std::string description = {}) {
        if (!value.empty()) found.push_back({std::move(value), std::move(description)});
    }
    // Another name of what was added: offered only when something is typed, to offer each once.
    void also(std::string value, std::string description) {
        if (!word.empty()) add(std::move(value), std::move(description));
    }
    template <class T>
    [[nodiscard]] std::vector<T> list(std::string const& path,
                                      std::size_t first = items_max) const {
        auto const connection = Connection::open(options);
        if (!connection) return {};
        auto const answer = connection->list(
            {.path = path, .timeout = answer_time_max, .patience = std::chrono::seconds(0)}, first);
        if (!answer) return {};
        auto all = value_of<ItemList<T>>(*answer);
        return all ? std::move(all->items) : std::vector<T>();
    }
};

void add_pfs(Asked& asked) {
    for (auto const& view : asked.list<PfView>("/v1/pfs")) {
        auto const& info = view.pf.info;
        asked.add(to_string(info.pci), info.ifname + " " + info.device_name);
        asked.add(info.ifname, to_string(info.pci) + " " + info.device_name);
    }
}

void add_vfs(Asked& asked) {
    for (auto const& view : asked.list<PfView>("/v1/pfs"))
        for (auto const& vf : view.vfs) {
            auto const& info = view.pf.info;
            auto const what = fmt::format("{} {}", enum_name(vf.state), vf.vm.value_or(""));
            asked.add(to_string(VfId{info.pci, vf.vf.index}), what);
            if (!info.ifname.empty())
                asked.also(fmt::format("{}/{}", info.ifname, vf.vf.index), what);
        }
}

void add_vms(Asked& asked) {
    for (auto const& vm : asked.list<VmInfo>("/v1/vms")) {
        asked.add(vm.name, std::string(enum_name(vm.state)));
        asked.also(vm.uuid, vm.name);
    }
}

void add_attachments(Asked& asked) {
    for (auto const& each : asked.list<Attachment>("/v1/attachments")) {
        asked.add(each.id, fmt::format("VM {}, VF {}", each.vm, to_string(each.vf)));
        asked.also(each.vm, "attachment " + each.id);
        asked.also(to_string(each.vf), "attachment " + each.id);
    }
}

// The latest come first; older ones are offered when something of the id is typed.
void add_operations(Asked& asked) {
    constexpr std::size_t latest = 20;
    auto const first = asked.word.empty() ? latest : items_max;
    for (auto const& each : asked.list<Operation>("/v1/operations", first))
        asked.add(each.id, fmt::format("{} {} {}", enum_name(each.kind), enum_name(each.state),
                                       each.subject));
}

void add_networks(Asked& asked) {
    for (auto const& each : asked.list<Network>("/v1/networks"))
        asked.add(each.name, to_string(each.prefix));
}

void add_pools(Asked& asked) {
    for (auto const& each : asked.list<Pool>("/v1/pools")) asked.add(each.name);
}

void add_reservations(Asked& asked) {
    for (auto const& each : asked.list<Reservation>("/v1/reservations")) asked.add(each.name);
}

void add_tenants(Asked& asked) {
    for (auto const& each : asked.list<Tenant>("/v1/tenants")) asked.add(each.name);
}

void add_tokens(Asked& asked) {
    for (auto const& token : asked.list<TokenView>("/v1/tokens"))
        asked.add(token.id, token.role + " " + token.description);
}

void add_links(Asked& asked) {
    for (auto const& link : asked.list<RdmaLink>("/v1/rdma-links"))
        asked.add(link.name, std::string(enum_name(link.state)));
}

void add_firmware_words(Asked& asked) {
    add_pfs(asked);
    for_each_firmware_setting([&](char const* name, auto) { asked.add(fmt::format("{}=", name)); });
}

void add_netdevs(Asked& asked) {
    for (auto const& netdev : paths_in("/sys/class/net")) asked.add(netdev.filename().string());
}

void add_contexts(Asked& asked) {
    auto const contexts = read_contexts(context_files());
    if (!contexts) return;
    for (auto const& [name, context] : contexts->by_name) asked.add(name, context.address);
}

void add_hosts(Asked& asked) {
    add_contexts(asked);
    asked.add("unix:", "a daemon's socket");
    asked.add("https://", "a daemon of another host");
}

void add_symptoms(Asked& asked) {
    for (auto const& symptom : checks::all_symptoms())
        if (symptom.applies != checks::AppliesTo::guest)
            asked.add(std::string(symptom.id), std::string(symptom.title));
}

void add_methods(Asked& asked) {
    for (auto const* const method : {"GET", "PUT", "POST", "DELETE"}) asked.add(method);
}

void add_files(Asked& asked) {
    asked.add(files_marker);
}

constexpr std::pair<std::string_view, void (*)(Asked&)> kinds[] = {
    {"PF", add_pfs},
    {"VF", add_vfs},
    {"VM", add_vms},
    {"ATTACHMENT", add_attachments},
    {"OPERATION", add_operations},
    {"NETWORK", add_networks},
    {"POOL", add_pools},
    {"RESERVATION", add_reservations},
    {"TENANT", add_tenants},
    {"TOKEN", add_tokens},
    {"LINK", add_links},
    {"WORDS", add_firmware_words},
    {"DEV", add_netdevs},
    {"CONTEXT", add_contexts},
    {"HOST", add_hosts},
    {"SYMPTOM", add_symptoms},
    {"METHOD", add_methods},
    {"FILE", add_files},
};

}  // namespace

std::vector<Completion> completions(std::string const& kind, std::string const& word,
                                    Options const& options) {
    Asked asked{word, options};
    for (auto const& [name, add] : kinds)
        if (name == kind) add(asked);
    return std::move(asked.found);
}

std::vector<Completion> choices_of(std::string const& type) {
    auto const begin = type.find(":{");
    if (begin == std::string::npos || !type.ends_with('}')) return {};
    std::string_view rest = std::string_view(type).substr(begin + 2);
    rest.remove_suffix(1);
    std::vector<Completion> choices;
    while (auto const choice = take_until(rest, ',')) choices.push_back({std::string(*choice)});
    choices.push_back({std::string(rest)});
    return choices;
}

}  // namespace vfmgr
