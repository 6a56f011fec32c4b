// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/enrolment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>

#include "api/os/descriptor.hpp"
#include "api/os/file.hpp"
#include "api/types/json.hpp"
#include "guest-tools/net/configure.hpp"

namespace vfmgr::guest {

template <class F, Of<Enrolled> V>
void fields(F& f, V& enrolled) {
    f.value("enrolment", enrolled.enrolment);
    f.value("key", enrolled.key);
}

namespace {

namespace fs = std::filesystem;

constexpr mode_t readable_by_root = 0600;
constexpr std::chrono::hours renewal_time{24 * 15};  // before the key's end
constexpr std::size_t file_bytes_max = 64 * 1024;

// Those of one folder. In fw_cfg each name is a folder, whose file "raw" has the content.
std::vector<Enrolment> enrolments_in(fs::path const& folder) {
    std::vector<Enrolment> found;
    for (auto const& path : paths_in(folder)) {
        if (!path.filename().string().starts_with("enrolment")) continue;
        std::error_code failed;
        auto const text = read_file(fs::is_directory(path, failed) ? path / "raw" : path);
        if (!text || text->size() > file_bytes_max) continue;
        auto enrolment = from_json_text<Enrolment>(*text);
        if (enrolment && fits_file_name(enrolment->attachment.attachment, ""))
            found.push_back(std::move(*enrolment));
    }
    return found;
}

// A virtio device of type 19 (virtio_ids.h).
bool has_vsock_device(fs::path const& virtio) {
    for (auto const& device : paths_in(virtio))
        if (read_file(device / "device").value_or("").starts_with("0x0013")) return true;
    return false;
}

bool is_refused(Error const& error) {
    return error.problem == Problem::unauthorized;
}

}  // namespace

fs::path Enrolments::file(std::string const& attachment) const {
    return places_.keys / (attachment + ".json");
}

std::vector<Enrolled> Enrolments::records() const {
    std::vector<Enrolled> all;
    for (auto const& path : paths_in(places_.keys)) {
        if (path.extension() != ".json") continue;
        if (auto enrolled = from_json_text<Enrolled>(read_file(path).value_or("")))
            all.push_back(std::move(*enrolled));
    }
    return all;
}

std::vector<Enrolled> Enrolments::kept() const {
    auto all = records();
    std::erase_if(all, [](Enrolled const& one) { return one.key.key.empty(); });
    return all;
}

std::vector<Enrolment> Enrolments::pending() const {
    auto const known = records();
    auto const now = std::chrono::system_clock::now();
    auto all = enrolments_in(places_.fw_cfg);
    for (auto& one : enrolments_in(places_.etc)) all.push_back(std::move(one));
    std::erase_if(all, [&](Enrolment const& one) {
        return one.expires_at <= now || std::ranges::any_of(known, [&](Enrolled const& had) {
                   return had.enrolment.token == one.token;
               });
    });
    return all;
}

std::vector<GuestAttachment> Enrolments::with_attachments(std::vector<GuestAttachment> all) const {
    auto const add = [&all](GuestAttachment const& one) {
        if (std::ranges::find(all, one.attachment, &GuestAttachment::attachment) == all.end())
            all.push_back(one);
    };
    for (auto const& one : kept()) add(one.enrolment.attachment);
    for (auto const& one : pending()) add(one.attachment);
    return all;
}

Result<void> Enrolments::keep(Enrolled const& enrolled) const {
    auto const target = file(enrolled.enrolment.attachment.attachment);
    auto saved = replace_file(target, to_json_text(enrolled) + "\n", readable_by_root);
    if (saved) return {};
    return fail({Problem::unavailable, fmt::format("{} can't be written", target.string()),
                 "run vf-guest as root; /var/lib must be writable",
                 std::move(saved.error().causes)});
}

Result<void> Enrolments::enrol(Enrolment const& enrolment) const {
    std::error_code failed;
    fs::create_directories(places_.keys, failed);
    fs::permissions(places_.keys, fs::perms::owner_all, failed);
    // The token is good once, for whichever process comes first.
    auto const lock_file = places_.keys / "lock";
    FileDescriptor const lock(
        ::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, readable_by_root));
    if (!lock || ::flock(lock.get(), LOCK_EX) != 0)
        return fail({Problem::unavailable,
                     fmt::format("{} can't be locked", lock_file.string()),
                     "run vf-guest as root; /var/lib must be writable",
                     {errno_cause("flock", errno)}});
    auto const due = pending();
    if (std::ranges::find(due, enrolment) == due.end()) return {};
    auto key = client_of(enrolment, {}).enrol(enrolment.token);
    if (!key && is_refused(key.error())) static_cast<void>(keep({enrolment, {}}));
    if (!key) return fail(std::move(key.error()));
    return keep({enrolment, std::move(*key)});
}

Result<void> Enrolments::renew(Enrolled const& enrolled, Time now) const {
    if (now + renewal_time < enrolled.key.expires_at) return {};
    auto const& key = enrolled.key.key;
    VFMGR_TRY(auto next, client_of(enrolled.enrolment, key).enrol(key));
    return keep({enrolled.enrolment, std::move(next)});
}

void Enrolments::forget(Enrolled const& refused) const {
    // A newer one may have taken its place.
    auto const all = records();
    if (std::ranges::find(all, refused) != all.end())
        static_cast<void>(keep({refused.enrolment, {}}));
}

HostClient client_of(Enrolment const& enrolment, std::string const& key) {
    auto const& attachment = enrolment.attachment;
    return HostClient(http::TlsTarget{.host = to_string(attachment.responder),
                                      .port = enrolment.port,
                                      .fingerprint = enrolment.fingerprint,
                                      .local_address = to_string(attachment.address)},
                      key);
}

HostEnds::HostEnds(http::VsockTarget const& vsock, Enrolments enrolments)
    : enrolments_(std::move(enrolments)) {
    for (auto const& one : enrolments_.kept())
        ends_.push_back({one, client_of(one.enrolment, one.key.key),
                         GuestConfig{0, {one.enrolment.attachment}}});
    if (ends_.empty() || has_vsock_device(enrolments_.places().virtio))
        ends_.push_back({{}, HostClient(vsock), {}});
}

Result<void> HostEnds::ask(End& end, std::chrono::seconds wait) {
    auto config = end.client.config(wait, end.last ? end.last->revision : 0);
    if (config) {
        end.last = std::move(*config);
        return {};
    }
    if (end.enrolled && is_refused(config.error())) {
        enrolments_.forget(*end.enrolled);
        end.last = GuestConfig{};
        return {};
    }
    return fail(std::move(config.error()));
}

// Another number whenever that of an end is another; below 2^53, and never 0.
GuestConfig HostEnds::merged() const {
    if (ends_.size() == 1) return ends_.front().last.value_or(GuestConfig{});
    constexpr std::uint64_t odd = 1'000'003, exact = (std::uint64_t{1} << 53U) - 1;
    GuestConfig all;
    for (auto const& end : ends_) {
        auto const one = end.last.value_or(GuestConfig{});
        all.revision = (all.revision * odd + one.revision) & exact;
        std::ranges::copy(one.attachments, std::back_inserter(all.attachments));
    }
    all.revision |= 1U;
    return all;
}

// The host's long poll is for one end. With several, each waits for a second in turn.
Result<GuestConfig> HostEnds::config(std::chrono::seconds wait, std::uint64_t revision) {
    auto const until = std::chrono::steady_clock::now() + wait;
    bool const alone = ends_.size() == 1;
    auto const turn = alone ? wait : std::min(wait, std::chrono::seconds(1));
    while (true) {
        std::optional<Error> first_failure;
        bool answered = false;
        for (auto& end : ends_) {
            auto const asked = ask(end, turn);
            answered = answered || asked.has_value();
            if (!asked && (!first_failure || !end.last)) first_failure = asked.error();
        }
        bool const known =
            std::ranges::all_of(ends_, [](End const& end) { return end.last.has_value(); });
        if (first_failure && (!answered || !known)) return fail(std::move(*first_failure));
        auto all = merged();
        if (alone || all.revision != revision || std::chrono::steady_clock::now() >= until)
            return all;
    }
}

Result<HostTopology> HostEnds::topology() {
    auto topology = ends_.front().client.topology();
    for (auto end = ends_.begin() + 1; !topology && end != ends_.end(); ++end)
        topology = end->client.topology();
    return topology;
}

HostClient& HostEnds::of(std::string const& attachment) {
    auto const found = std::ranges::find_if(ends_, [&](End const& end) {
        return end.enrolled && end.enrolled->enrolment.attachment.attachment == attachment;
    });
    return found == ends_.end() ? ends_.back().client : found->client;
}

HostEnds reach_host(http::VsockTarget const& vsock, Enrolments const& enrolments,
                    SetUp const& set_up, Note const& note) {
    for (auto const& one : enrolments.kept()) {
        auto const& attachment = one.enrolment.attachment;
        auto const ready = set_up(attachment);
        note(attachment.attachment,
             ready ? enrolments.renew(one, std::chrono::system_clock::now()) : ready);
    }
    for (auto const& one : enrolments.pending()) {
        auto const ready = set_up(one.attachment);
        note(one.attachment.attachment, ready ? enrolments.enrol(one) : ready);
    }
    return {vsock, enrolments};
}

}  // namespace vfmgr::guest

template struct vfmgr::Json<vfmgr::guest::Enrolled>;
