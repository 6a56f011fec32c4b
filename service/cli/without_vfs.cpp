// SPDX-License-Identifier: Apache-2.0
// vfctl vm without-vfs: libvirt refuses to save, snapshot or migrate a VM that has a host device
// (vfmgr/hypervisor/LIBVIRT.md#what-a-host-device-forbids). This takes the VFs out, runs the
// command, and attaches VFs again.
#include "service/cli/without_vfs.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <array>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/os/file.hpp"
#include "api/os/process.hpp"
#include "api/os/random.hpp"
#include "api/types/reservation.hpp"
#include "api/types/vm_info.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/resolve.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {

Result<std::vector<AttachmentSpec>> specs_again(std::vector<Attachment> const& attachments,
                                                SamePfs same, bool runs) {
    std::vector<AttachmentSpec> specs;
    for (auto const& attachment : attachments) {
        auto spec = attachment.spec;
        spec.vm = attachment.vm_uuid;
        spec.pf = attachment.vf.pf;
        spec.vf.reset();           // the same addresses on any VF
        spec.reservation.reset();  // the attachment used it up
        if (spec.adopt) spec.settings = attachment.settings;
        spec.adopt.reset();  // the VM no longer has it
        spec.settings.mac = attachment.settings.mac;
        spec.settings.node_guid = attachment.settings.node_guid;
        spec.settings.port_guid = attachment.settings.port_guid;
        spec.address = attachment.address;
        if (same == SamePfs::no) {
            if (!spec.network && !spec.pool)
                return fail(Problem::invalid_request,
                            fmt::format("attachment {} names neither a network nor a pool, so the "
                                        "other host has nothing to choose a PF by",
                                        attachment.id),
                            "attach the VM's VFs by network or pool, and try again");
            spec.pf.reset();
        }
        bool const verified = spec.verify.value_or(VerifyMode::none) != VerifyMode::none ||
                              attachment.verification.has_value();
        if (verified) spec.verify = runs ? VerifyMode::required : VerifyMode::background;
        specs.push_back(std::move(spec));
    }
    return specs;
}

void use_reservation(std::vector<AttachmentSpec>& specs, std::string const& name) {
    for (auto& spec : specs) {
        spec.pool.reset();
        spec.reservation = name;
    }
}

namespace {

using nlohmann::json;

struct WithoutVfs {
    std::string then_on;      // the API of the host that the VM is on afterwards; empty: this one
    std::string reservation;  // of that host
    std::vector<std::string> command;
};

// While the command runs, Ctrl-C is the command's: vfctl still has to attach the VFs. A caught
// signal, unlike an ignored one, is the default again in the command.
class CommandsSignals {
  public:
    CommandsSignals() {
        for (std::size_t i = 0; i < signals_.size(); ++i)
            before_.at(i) = std::signal(signals_.at(i), [](int) {});
    }
    ~CommandsSignals() {
        for (std::size_t i = 0; i < signals_.size(); ++i)
            std::signal(signals_.at(i), before_.at(i));
    }
    CommandsSignals(CommandsSignals const&) = delete;
    CommandsSignals& operator=(CommandsSignals const&) = delete;

  private:
    static constexpr std::array<int, 3> signals_{SIGINT, SIGTERM, SIGHUP};
    std::array<void (*)(int), 3> before_{};
};

Result<int> run_command(std::vector<std::string> const& command) {
    CommandsSignals const signals;
    auto const child = spawn({.arguments = command});
    if (!child)
        return fail(Problem::invalid_request,
                    fmt::format("{} can't be run: {}", command.front(),
                                std::generic_category().message(child.error())),
                    "give a command after --");
    return reap(*child).exit_status;
}

// Kept until the VM has its VFs again, whatever becomes of vfctl.
class Note {
  public:
    static Result<Note> write(std::string const& body) {
        std::error_code failed;
        auto const folder = std::filesystem::temp_directory_path(failed);
        Note note(folder / fmt::format("vfctl-{}.json", random_hex(8)));
        if (!failed && replace_file(note.name_, body, S_IRUSR | S_IWUSR)) return note;
        return fail(Problem::invalid_request, fmt::format("{} can't be written", note.name()),
                    "set TMPDIR to a folder with space");
    }
    ~Note() {
        std::error_code ignored;  // it stays in a folder for temporary files
        if (remove_) std::filesystem::remove(name_, ignored);
    }
    Note(Note&& other) noexcept
        : name_(std::move(other.name_)), remove_(std::exchange(other.remove_, false)) {}
    Note& operator=(Note&&) = delete;
    Note(Note const&) = delete;
    Note& operator=(Note const&) = delete;

    void keep() { remove_ = false; }
    // Says whether the file now has this text in place of the one before.
    [[nodiscard]] bool replace(std::string const& body) {
        return replace_file(name_, body, S_IRUSR | S_IWUSR).has_value();
    }
    [[nodiscard]] std::string name() const { return name_.string(); }

  private:
    explicit Note(std::filesystem::path name) : name_(std::move(name)) {}
    std::filesystem::path name_;
    bool remove_ = true;
};

// The VM may have lost VFs: says how it gets them again.
Error with_note(Error error, Note& note, std::string const& vm) {
    note.keep();
    error.remedy += fmt::format(
        "; then give VM {} the VFs that it lacks: vfctl query POST "
        "/v1/attachments - <{}",
        vm, note.name());
    return error;
}

bool is_running_at(Connection const& connection, std::string const& vm) {
    auto const now = get<VmInfo>(connection, "/v1/vms/" + vm);
    return now && now->state == VmState::running;
}

std::string body_of(std::vector<AttachmentSpec> const& specs) {
    return json{{"attachments", std::vector<json>(specs.begin(), specs.end())}}.dump();
}

Result<std::vector<AttachmentSpec>> specs_for(std::vector<Attachment> const& attachments,
                                              WithoutVfs const& arguments, bool runs) {
    auto const same = arguments.then_on.empty() ? SamePfs::yes : SamePfs::no;
    VFMGR_TRY(auto specs, specs_again(attachments, same, runs));
    if (!arguments.reservation.empty()) use_reservation(specs, arguments.reservation);
    return specs;
}

// A reservation that has expired meanwhile is reported before the VM loses a VF.
Result<void> check_reservation(Options const& there, WithoutVfs const& arguments) {
    if (arguments.reservation.empty()) return {};
    VFMGR_TRY(auto const connection, Connection::open(there));
    VFMGR_CHECK(get<Reservation>(connection, "/v1/reservations/" + arguments.reservation));
    return {};
}

Result<void> attach_again(Options const& options, std::vector<Attachment> const& attachments,
                          WithoutVfs const& arguments) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    bool const runs = is_running_at(connection, attachments.front().vm_uuid);
    VFMGR_TRY(auto const specs, specs_for(attachments, arguments, runs));
    ApiRequest request{.method = "POST", .path = "/v1/attachments", .body = body_of(specs)};
    return change_and_report(connection, options, std::move(request),
                             fmt::format("VM {} has its {} VF{} again", attachments.front().vm,
                                         specs.size(), specs.size() == 1 ? "" : "s"));
}

Result<int> without_vfs(Options const& options, std::string const& vm,
                        WithoutVfs const& arguments) {
    VFMGR_CHECK(refuse_dry_run(options));
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(auto const attachments, attachments_of_vm(connection, vm));
    if (attachments.empty()) return run_command(arguments.command);
    auto there = options;
    if (!arguments.then_on.empty()) there.host = arguments.then_on;
    VFMGR_CHECK(check_reservation(there, arguments));
    VFMGR_TRY(auto const specs, specs_for(attachments, arguments, false));
    VFMGR_TRY(auto note, Note::write(body_of(specs)));
    auto const out =
        change_and_report(connection, options, detach_request(attachments),
                          fmt::format("VM {} is without its {} VF{}", attachments.front().vm,
                                      attachments.size(), attachments.size() == 1 ? "" : "s"));
    if (!out) return fail(with_note(out.error(), note, attachments.front().vm));
    auto const ran = run_command(arguments.command);
    // A command that failed has moved no VM.
    bool const moved = ran && *ran == 0 && !arguments.then_on.empty();
    auto const back = moved ? attach_again(there, attachments, arguments)
                            : attach_again(options, attachments, {});
    if (back) return ran;
    if (!moved) {
        VFMGR_TRY(auto const here, specs_for(attachments, {}, false));
        if (!note.replace(body_of(here))) return fail(back.error());
    }
    return fail(with_note(back.error(), note, attachments.front().vm));
}

}  // namespace

void add_without_vfs_command(CLI::App& vm, Session& session) {
    auto const [command, name, arguments] = add_named(
        vm, session, "without-vfs", "run a command while the VM has no VFs, and attach them again",
        {"VM", "name or UUID"}, without_vfs, WithoutVfs{});
    auto* const then_on =
        command
            ->add_option("--then-on", arguments.then_on,
                         "context or address of the vfmgrd whose VM it is afterwards (default: "
                         "this one)")
            ->type_name("HOST");
    command
        ->add_option("--reservation", arguments.reservation,
                     "reservation there that keeps the VFs until then")
        ->needs(then_on);
    command->add_option("COMMAND", arguments.command, "after --: what libvirt refuses before")
        ->required();
}

}  // namespace vfmgr
