// SPDX-License-Identifier: Apache-2.0
// How a VM without a vsock device reaches its host: by TCP over the VF itself. A file of the VM
// says how to set up the VF and where the host is, with a token that is good once; the key that the
// host gives for it is kept across reboots. Several processes may use the same places.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types/enrolment.hpp"
#include "guest-tools/net/host_client.hpp"

namespace vfmgr::guest {

struct EnrolmentPlaces {
    // In the first two: every file, or folder with a file "raw", whose name begins with
    // "enrolment".
    std::filesystem::path fw_cfg = "/sys/firmware/qemu_fw_cfg/by_name/opt/org.vfmgr";
    std::filesystem::path etc = "/etc/vf-guest";
    std::filesystem::path keys = "/var/lib/vf-guest/keys";  // 0700, its files 0600
    std::filesystem::path virtio = "/sys/bus/virtio/devices";
};

// What is kept of an attachment: its enrolment, with the token that was used, and the key; an empty
// one once the host has refused it, so that the token is not shown again.
struct Enrolled {
    Enrolment enrolment;
    GuestKey key;
    bool operator==(Enrolled const&) const = default;
};

class Enrolments {
  public:
    explicit Enrolments(EnrolmentPlaces places = {}) : places_(std::move(places)) {}

    [[nodiscard]] EnrolmentPlaces const& places() const { return places_; }
    [[nodiscard]] std::vector<Enrolled> kept() const;  // those with a key
    // Those whose token was not shown so far, and has not expired. A file that can't be parsed is
    // left out.
    [[nodiscard]] std::vector<Enrolment> pending() const;
    // Adds the VFs of both that are not among `all`: they are set up before the host is reached.
    [[nodiscard]] std::vector<GuestAttachment> with_attachments(
        std::vector<GuestAttachment> all) const;
    // Presents the token over the VF, which is set up, and keeps the key. Blocks, at most for about
    // ten seconds; another process that enrols comes first.
    [[nodiscard]] Result<void> enrol(Enrolment const& enrolment) const;
    // Gets another key in the second half of the present one's time.
    [[nodiscard]] Result<void> renew(Enrolled const& enrolled, Time now) const;
    // The host does not accept this key: the attachment has another, or there is another with its
    // VF's address.
    void forget(Enrolled const& refused) const;

  private:
    [[nodiscard]] std::vector<Enrolled> records() const;
    [[nodiscard]] Result<void> keep(Enrolled const& enrolled) const;
    [[nodiscard]] std::filesystem::path file(std::string const& attachment) const;

    EnrolmentPlaces places_;
};

// The host's end of an enrolment, with a key or without.
[[nodiscard]] HostClient client_of(Enrolment const& enrolment, std::string const& key);

// All ways from this VM to its host: vsock, and TCP over each VF that has a key. Blocking; one
// thread; a copy, for another thread, shares the pace.
class HostEnds {
  public:
    // Vsock is one of them if the VM has the device, or no other way.
    HostEnds(http::VsockTarget const& vsock, Enrolments enrolments);

    // The attachments of all ends. One that does not answer counts with what it said before, over
    // TCP at first with the enrolment's attachment; fails if none answers, or vsock never did.
    [[nodiscard]] Result<GuestConfig> config(std::chrono::seconds wait, std::uint64_t revision);
    // Asks one end after the other, and returns the first answer.
    [[nodiscard]] Result<HostTopology> topology();
    [[nodiscard]] HostClient& of(std::string const& attachment);

  private:
    struct End {
        std::optional<Enrolled> enrolled;  // absent: vsock
        HostClient client;
        std::optional<GuestConfig> last{};
    };
    [[nodiscard]] Result<void> ask(End& end, std::chrono::seconds wait);
    [[nodiscard]] GuestConfig merged() const;

    Enrolments enrolments_;
    std::vector<End> ends_;  // never empty
};

// Sets up each VF that `enrolments` name by `set_up`, enrols where that is due, and returns the
// ends. What fails, or no longer does, goes to `note`: the other VFs work without it.
using SetUp = std::function<Result<void>(GuestAttachment const&)>;
using Note = std::function<void(std::string const& attachment, Result<void> const& done)>;
[[nodiscard]] HostEnds reach_host(http::VsockTarget const& vsock, Enrolments const& enrolments,
                                  SetUp const& set_up, Note const& note);

}  // namespace vfmgr::guest
