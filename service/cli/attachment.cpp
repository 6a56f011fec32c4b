// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/types/attachment.hpp"
#include "api/types/guest.hpp"
#include "api/types/text.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/attach_spec.hpp"
#include "service/cli/certificate.hpp"
#include "service/cli/choice.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/enrolment.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/resolve.hpp"
#include "service/cli/setting_options.hpp"
#include "service/cli/show.hpp"
#include "service/cli/verification_history.hpp"

namespace vfmgr {
namespace {

using nlohmann::json;

// Makes retries safe: after a lost answer, the same key finds the same operation.
std::string random_key() {
    std::ifstream file("/proc/sys/kernel/random/uuid");
    std::string key;
    std::getline(file, key);
    return key;
}

Result<void> print_attachment(Connection const& connection, Options const& options,
                              std::string const& path) {
    VFMGR_TRY(auto const response, connection.send({.path = path}));
    return print_answer<Attachment>(
        response, options, [](Attachment const& one) { return attachment_table({one}); },
        attachment_page);
}

// A number is that of a VF of --pf; any other name of a VF names its PF, too.
Result<AttachedVf> vf_to_attach(Connection const& connection, AttachArguments const& arguments) {
    auto const number = parse_digits(arguments.vf, {.max = UINT16_MAX});
    bool const named = !arguments.vf.empty() && !number;
    bool const chooses =
        !arguments.network.empty() || !arguments.pool.empty() || !arguments.reservation.empty();
    if (arguments.pf.empty() && !named && !number && !chooses)
        return fail(Problem::invalid_request, "no PF is named, and nothing to choose one by",
                    "add --network, --pool or --reservation, or --pf PF");
    if (arguments.pf.empty() && number)
        return fail(Problem::invalid_request,
                    fmt::format("VF {} of which PF is not named", arguments.vf),
                    fmt::format("add --pf PF, or write --vf PF/{}", arguments.vf));
    AttachedVf chosen;
    if (!arguments.pf.empty()) {
        VFMGR_TRY(chosen.pf, resolve_pf(connection, arguments.pf));
    }
    if (number) chosen.index = static_cast<std::uint16_t>(*number);
    if (!named) return chosen;
    VFMGR_TRY(auto const vf, resolve_vf(connection, {arguments.vf}));
    if (!arguments.pf.empty() && vf.pf != chosen.pf)
        return fail(Problem::invalid_request,
                    fmt::format("--vf {} is not a VF of --pf {}", arguments.vf, arguments.pf),
                    "leave --pf out");
    return AttachedVf{vf.pf, vf.index};
}

// What only one VF can have.
Result<void> check_count(AttachArguments const& arguments) {
    if (arguments.count.value_or(1) == 1) return {};
    for (auto const& [option, value] :
         {std::pair{"--vf", &arguments.vf}, std::pair{"--address", &arguments.address},
          std::pair{"--mac", &arguments.mac}, std::pair{"--node-guid", &arguments.node_guid},
          std::pair{"--port-guid", &arguments.port_guid},
          std::pair{"--guest-address", &arguments.guest_address}})
        if (!value->empty())
            return fail(
                Problem::invalid_request,
                fmt::format("{} names one VF's, and {} are requested", option, *arguments.count),
                fmt::format("leave {} out: each VF gets its own", option));
    return {};
}

Result<void> attach(Options const& options, AttachArguments const& arguments) {
    VFMGR_CHECK(check_count(arguments));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const vf, vf_to_attach(connection, arguments));
    VFMGR_TRY(AttachmentSpec const spec, attachment_spec(arguments, vf));
    bool const several = arguments.count.value_or(1) > 1;
    auto body = json(spec);
    if (several) body = {{"attachments", std::vector<json>(*arguments.count, body)}};
    ApiRequest request{.method = "POST", .path = "/v1/attachments", .body = body.dump()};
    if (auto key = random_key(); !options.dry_run && !key.empty())
        request.headers["idempotency-key"] = std::move(key);
    VFMGR_TRY(auto const settled,
              change(connection, options, std::move(request), attachment_table({})));
    if (!settled.done) return {};
    auto const& operation = settled.done->operation;
    auto const& receiver = spec.holder ? spec.holder->name : spec.vm;
    if (several) {
        print_sentence(fmt::format("VM {} has its {} VFs", receiver, *arguments.count), options);
        std::vector<std::string> paths;
        for (auto const& id : operation.attachments)
            paths.push_back(settled.done->at("/v1/attachments/" + id));
        return print_attachments(connection, options, paths);
    }
    print_sentence(fmt::format("VM {} has its VF", receiver), options);
    return print_attachment(connection, options, settled.done->at(operation.subject));
}

Result<void> set_attachment(Options const& options, std::string const& name,
                            AttachArguments const& arguments) {
    VFMGR_TRY(auto const patch, attachment_patch(arguments));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const id, resolve_attachment(connection, name));
    auto const path = "/v1/attachments/" + id;
    VFMGR_TRY(
        auto const settled,
        change(connection, options, {.method = "PATCH", .path = path, .body = json(patch).dump()},
               attachment_table({})));
    if (settled.shown) return {};
    print_sentence(settled.done ? fmt::format("attachment {} has changed", id)
                                : fmt::format("attachment {} has these settings already", id),
                   options);
    return print_attachment(connection, options, path);
}

struct DetachArguments {
    bool all = false;  // of the VM
};

Result<void> detach_all(Connection const& connection, Options const& options,
                        std::string const& vm) {
    VFMGR_TRY(auto const attachments, attachments_of_vm(connection, vm));
    if (attachments.empty())
        return fail(Problem::not_found, fmt::format("no VM {} has an attachment", vm),
                    "vfctl attachment list shows which have");
    return change_and_report(
        connection, options, detach_request(attachments),
        fmt::format("detached: the {} VFs of VM {} were reset and verified clean",
                    attachments.size(), vm));
}

Result<void> detach(Options const& options, std::string const& name,
                    DetachArguments const& arguments) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    if (arguments.all) return detach_all(connection, options, name);
    VFMGR_TRY(auto const id, resolve_attachment(connection, name));
    ApiRequest request{.method = "DELETE", .path = "/v1/attachments/" + id};
    VFMGR_TRY(auto const settled,
              change(connection, options, std::move(request), operation_table({})));
    if (!settled.done) return {};
    auto const& certificate = settled.done->operation.certificate;
    print_sentence(certificate ? fmt::format("detached: VF {} of {} was reset and verified clean",
                                             certificate->vf.index, to_string(certificate->vf.pf))
                               : fmt::format("detached: attachment {} ended, its VF is gone", id),
                   options);
    return print_done(*settled.done, options);
}

Result<void> list_attachments(Options const& options) {
    return print_list<Attachment>(options, {.path = "/v1/attachments"}, attachment_table);
}

Result<void> show_attachment(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const id, resolve_attachment(connection, name));
    return print_attachment(connection, options, "/v1/attachments/" + id);
}

Result<void> verifications(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const id, resolve_attachment(connection, name));
    return show_verifications(connection, options, "/v1/attachments/" + id + "/verifications");
}

// An ended attachment is in no list, so any text that can be an id is taken for one.
Result<void> certificate(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    auto id = name;
    if (!is_attachment_id(name)) {
        VFMGR_TRY(id, resolve_attachment(connection, name));
    }
    VFMGR_TRY(auto const response,
              connection.send({.path = "/v1/attachments/" + id + "/certificate"}));
    return print_answer<Certificate>(response, options, certificate_table, certificate_page);
}

struct VerifyArguments {
    std::optional<std::uint32_t> timeout_seconds;
    std::string profile;
    std::string responder;  // HOST:PORT; empty: the host's own
    std::string responder_fingerprint;
    std::string responder_token_file;
};

Result<json> responder_of(VerifyArguments const& arguments) {
    auto const place = parse_host_port(arguments.responder, responder_tls_port);
    if (!place)
        return fail(Problem::invalid_request,
                    fmt::format("--responder is HOST:PORT, not '{}'", arguments.responder),
                    "give it as vf-guest serve printed it");
    VFMGR_TRY(auto const token, read_token(arguments.responder_token_file));
    return json{{"host", place->host},
                {"port", place->port},
                {"fingerprint", arguments.responder_fingerprint},
                {"token", token}};
}

// Shows the run's report whether it passed or failed; only the exit code reports a failed run.
Result<void> verify(Options const& options, std::string const& name,
                    VerifyArguments const& arguments) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_CHECK(check_columns(options, test_table({})));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const id, resolve_attachment(connection, name));
    auto const path = "/v1/attachments/" + id;
    ApiRequest request{.method = "POST", .path = path + "/verifications"};
    auto body = json::object();
    if (arguments.timeout_seconds) body["timeout_seconds"] = *arguments.timeout_seconds;
    if (!arguments.profile.empty()) {
        VFMGR_TRY(auto const profile,
                  parse_choice<Profile>("--profile", arguments.profile, "see vfctl verify --help"));
        body["profile"] = enum_name(profile);
    }
    if (!arguments.responder.empty()) {
        VFMGR_TRY(body["responder"], responder_of(arguments));
    }
    request.body = body.dump();
    VFMGR_TRY(auto const response, connection.send(request));
    auto const settled = settle(connection, options, response);
    if (settled && settled->shown) return {};
    bool const ran = settled || settled.error().problem == Problem::guest_refused;
    if (!ran) return fail(settled.error());
    VFMGR_TRY(auto const attachment, get<Attachment>(connection, path));
    if (auto const& report = attachment.verification)
        VFMGR_CHECK(print(test_table(*report), verification_page(*report, options),
                          json(*report).dump(), options));
    if (!settled) return fail(settled.error());
    return {};
}

void add_verbose(CLI::App& command, Session& session) {
    command.add_flag("-v,--verbose", session.options.verbose, "also print every figure");
}

void add_attach(CLI::App& app, Session& session) {
    auto const [command, arguments] =
        add_command(app, session, "attach", "attach a VF to a VM; --verify proves RDMA over it",
                    attach, AttachArguments{});
    command->add_option("VM", arguments.vm, "name or UUID; none with --external");
    command
        ->add_option("--external", arguments.external,
                     "name of a VM that libvirt does not run: the VF is only made ready for it")
        ->type_name("NAME");
    command
        ->add_option("--uid", arguments.uid,
                     "user that gets the VFIO nodes of the VF, with --external (default: root)")
        ->type_name("UID");
    command
        ->add_option("--count", arguments.count,
                     "so many VFs at once: all of them, or none (default: 1)")
        ->check(CLI::Range(std::size_t{1}, attachment_set_max));
    command
        ->add_option("--pf", arguments.pf,
                     "PCI address or netdev (default: the VF's, or the best one for the network, "
                     "pool or reservation)")
        ->type_name("PF");
    command->add_option("--pool", arguments.pool, "pool that the VF is of")->type_name("POOL");
    command
        ->add_option("--reservation", arguments.reservation,
                     "reservation that keeps the VF until now")
        ->type_name("RESERVATION");
    command
        ->add_option("--near", arguments.near,
                     "gpu: the nearest PF to a GPU of the VM, best for all of --count")
        ->check(one_of<Near>());
    command
        ->add_option("--vf", arguments.vf, "number of the VF, or PF/NUMBER (default: any free one)")
        ->type_name("VF");
    command
        ->add_option("--network", arguments.network,
                     "network that the VF joins, with an address in it")
        ->type_name("NETWORK");
    command->add_option("--address", arguments.address,
                        "address of the VF in the network (default: the first free one)");
    add_settings(*command, arguments);
    add_best_effort(*command, arguments);
    command
        ->add_option("--persistence", arguments.persistence,
                     "where: live (running VM only), config (persistent XML only)")
        ->check(one_of<Persistence>());
    add_placing(*command, arguments);
    add_proof(*command, arguments, "undo the attach unless the VM proves RDMA over the VF");
    add_repeated_proof(*command, arguments);
    add_verbose(*command, session);
}

void add_attachment_set(CLI::App& attachment, Session& session) {
    auto const [command, id, arguments] = add_named(
        attachment, session, "set", "change settings of an attached VF while its VM has it",
        attachment_or_vm, set_attachment, AttachArguments{});
    add_changeable_settings(*command, arguments);
    add_best_effort(*command, arguments);
    add_unset(*command, arguments, "setting that returns to what the VF had before");
    command->add_flag("--allow-reset", arguments.allow_reset, "the VM may lose its link by it");
    add_proof(*command, arguments, "change it back unless the VM proves RDMA over the VF");
}

void add_verify_options(CLI::App& command, VerifyArguments& arguments) {
    command.add_option("--verify-timeout", arguments.timeout_seconds,
                       "seconds to wait for the proof");
    command
        .add_option("--profile", arguments.profile,
                    "quick: only proofs; default: figures, too; deep: more and longer")
        ->check(one_of<Profile>());
    auto* const responder =
        command.add_option("--responder", arguments.responder,
                           "HOST:PORT of vf-guest serve on another host (default: this host)");
    // Not --fingerprint and --token-file: those are for vfctl's own connection to the daemon.
    auto* const fingerprint =
        command.add_option("--responder-fingerprint", arguments.responder_fingerprint,
                           "SHA-256 of the responder's certificate, as vf-guest serve printed it");
    auto* const token = command
                            .add_option("--responder-token-file", arguments.responder_token_file,
                                        "file with the responder's token")
                            ->type_name("FILE");
    responder->needs(fingerprint)->needs(token);
}

}  // namespace

Result<void> print_attachments(Connection const& connection, Options const& options,
                               std::vector<std::string> const& paths) {
    auto documents = json::array();
    std::vector<Attachment> attachments;
    for (auto const& path : paths) {
        VFMGR_TRY(auto const response, connection.send({.path = path}));
        VFMGR_TRY(attachments.emplace_back(), value_of<Attachment>(response));
        documents.push_back(json::parse(response.body));
    }
    return print(attachment_table(attachments), documents.dump(), options);
}

void add_attachment_commands(CLI::App& app, Session& session) {
    add_attach(app, session);
    auto const [detach_command, detached, which] = add_named(
        app, session, "detach", "detach a VF from a VM, reset it and verify that it is clean",
        attachment_or_vm, detach, DetachArguments{});
    detach_command->add_flag("--all", which.all, "all VFs of the VM, in one operation");
    auto const [verify_command, id, arguments] =
        add_named(app, session, "verify", "prove RDMA over an attached VF again", attachment_or_vm,
                  verify, VerifyArguments{});
    add_verify_options(*verify_command, arguments);
    add_verbose(*verify_command, session);

    auto* const attachment =
        add_group(app, "attachment", "show attachments: which VM has which VF");
    add_command(*attachment, session, "list", "list all attachments", list_attachments);
    auto const [show_command, shown_id] =
        add_named(*attachment, session, "show", "show one attachment with its verification",
                  attachment_or_vm, show_attachment);
    add_verbose(*show_command, session);
    add_attachment_set(*attachment, session);
    add_adopt_command(*attachment, session);
    add_named(*attachment, session, "certificate",
              "show how its VF was detached: what was reset, by whom and when", attachment_or_vm,
              certificate);
    add_enrolment(*attachment, session);
    add_named(*attachment, session, "verifications", "list the runs of the RDMA tests over it",
              attachment_or_vm, verifications);
}

}  // namespace vfmgr
