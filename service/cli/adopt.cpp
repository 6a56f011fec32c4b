// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "service/cli/add_command.hpp"
#include "service/cli/attach_spec.hpp"
#include "service/cli/choice.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/resolve.hpp"
#include "service/cli/setting_options.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

using nlohmann::json;

struct AdoptArguments {
    std::vector<std::string> vfs;  // empty: each that the VM has and no attachment is about
    AttachArguments proof;         // network, address, verification
};

VfView const* find_view(std::vector<PfView> const& pfs, VfId const& vf) {
    for (auto const& view : pfs)
        for (auto const& each : view.vfs)
            if (id_of(each) == vf) return &each;
    return nullptr;
}

Result<std::vector<PciAddress>> named_vfs(std::vector<PfView> const& pfs,
                                          std::vector<std::string> const& names) {
    std::vector<PciAddress> named;
    for (auto const& name : names) {
        VFMGR_TRY(auto const id, vf_among(pfs, {name}));
        auto const* const view = find_view(pfs, id);
        if (!view)
            return fail(Problem::not_found, fmt::format("this host has no VF {}", to_string(id)),
                        "vfctl vf list shows those of this host");
        named.push_back(view->vf.pci);
    }
    return named;
}

// Those of PFs that vfmgr only observes are not the VM's to have from vfmgr.
Result<std::vector<PciAddress>> unattached_of(std::vector<PfView> const& pfs, VmInfo const& vm) {
    std::vector<PciAddress> found;
    auto const has = [&](PciAddress const& pci) {
        return find_hostdev(vm.live, pci) || find_hostdev(vm.config, pci);
    };
    for (auto const& view : pfs)
        for (auto const& each : view.vfs)
            if (view.spec && view.spec->mode != PfMode::observe && !each.attachment &&
                has(each.vf.pci))
                found.push_back(each.vf.pci);
    if (!found.empty()) return found;
    return fail(Problem::not_found,
                fmt::format("VM {} has no VF of a managed PF that vfmgr did not attach", vm.name),
                fmt::format("vfctl vm show {} lists its host devices, vfctl pf list the PFs' modes",
                            vm.name));
}

json adoption_of(AttachmentSpec const& spec, PciAddress const& pci) {
    json const all = spec;
    json body{{"pci", to_string(pci)}};
    for (auto const* const member : {"network", "address", "verify", "verify_timeout_seconds",
                                     "verify_profile", "verify_every_seconds"})
        if (all.contains(member)) body[member] = all[member];
    return body;
}

Result<void> adopt(Options const& options, std::string const& name,
                   AdoptArguments const& arguments) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const vm, resolve_vm(connection, name));
    VFMGR_TRY(auto const pfs, get_list<PfView>(connection, "/v1/pfs"));
    VFMGR_TRY(auto const vfs,
              arguments.vfs.empty() ? unattached_of(pfs, vm) : named_vfs(pfs, arguments.vfs));
    auto proof = arguments.proof;
    proof.vm = vm.uuid;
    VFMGR_TRY(auto const spec, attachment_spec(proof, {}));
    if (spec.address && vfs.size() > 1)
        return fail(Problem::invalid_request,
                    fmt::format("--address is one VF's, and VM {} has {}", vm.name, vfs.size()),
                    "name the VF (--vf), or leave --address out");
    std::vector<std::string> ids;
    std::vector<std::string> paths;
    for (auto const& pci : vfs) {
        auto settled = change(connection, options,
                              {.method = "POST",
                               .path = fmt::format("/v1/vms/{}/adoptions", vm.uuid),
                               .body = adoption_of(spec, pci).dump()},
                              attachment_table({}));
        if (!settled && !ids.empty())
            settled.error().detail += fmt::format("; adopted before: {}", fmt::join(ids, ", "));
        if (!settled) return fail(settled.error());
        if (!settled->done) continue;
        auto const& subject = settled->done->operation.subject;
        ids.push_back(subject.substr(subject.rfind('/') + 1));
        paths.push_back(settled->done->at(subject));
        print_sentence(
            fmt::format("VM {} keeps VF {}, as attachment {}", vm.name, to_string(pci), ids.back()),
            options);
    }
    return ids.empty() ? Result<void>() : print_attachments(connection, options, paths);
}

}  // namespace

void add_adopt_command(CLI::App& attachment, Session& session) {
    auto const [command, vm, arguments] =
        add_named(attachment, session, "adopt", "record VFs that somebody else plugged into a VM",
                  {"VM", "name or UUID"}, adopt, AdoptArguments{});
    command
        ->add_option("--vf", arguments.vfs,
                     "one of its VFs, may be repeated (default: all that are not attached yet)")
        ->type_name("VF");
    auto& proof = arguments.proof;
    command
        ->add_option("--network", proof.network, "network that the VF is in, with an address in it")
        ->type_name("NETWORK");
    command->add_option("--address", proof.address,
                        "address of the VF in the network (default: the first free one)");
    add_proof(*command, proof, "wait until the VM has proved RDMA over the VF");
    add_repeated_proof(*command, proof);
}

}  // namespace vfmgr
