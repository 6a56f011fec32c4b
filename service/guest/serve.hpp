// SPDX-License-Identifier: Apache-2.0
// All of vfmgr-guestd, between its two sockets: VMs reach the guest plane, the responder of the
// RDMA tests and the interop clients; vfmgrd says what each VM may do. Sessions outlive a vfmgrd
// that restarts; new requests wait until it is back. Any thread.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "service/guest/dialogue.hpp"
#include "service/guest/plane.hpp"
#include "vfmgr/proof/interop/interop_responder.hpp"

namespace vfmgr::guestd {

struct Seams {
    verify::Responder::CheckPeer check_peer;
    std::vector<std::string> rping_program;  // the command that runs interop::serve_rping()
    Clock& clock;
    http::OnBug on_bug;
    http::Limits limits{};  // of the VMs' connections
    // Keeps key and certificate for guests on TCP. Empty: none can connect so.
    std::string tls_folder{};
    std::function<void(std::string const&)> report = [](std::string const&) {};  // a failure
    std::uint16_t tls_port = guest_plane_port;
};

class Service {
  public:
    [[nodiscard]] static Result<std::unique_ptr<Service>> start(Seams seams);
    ~Service();
    Service(Service const&) = delete;
    Service& operator=(Service const&) = delete;

    // Where VMs connect; `wrap` may change the handler of their requests.
    using Wrap = std::function<http::Handler(http::Handler)>;
    [[nodiscard]] Result<void> listen(http::Listen const& where, Wrap const& wrap = {});
    // Speaks with vfmgrd over this connection, and no longer over an earlier one.
    void serve(FileDescriptor socket);

  private:
    Service(Seams const& seams, std::unique_ptr<verify::Responder> responder);
    // Guests on TCP: serve_tcp.cpp.
    void make_certificate();
    void listen_for_guests();
    void accept_on_tcp(http::TlsListen const& where, http::Request request, http::Respond respond);
    [[nodiscard]] Result<void> know(std::string const& guest, http::Request const& request);
    [[nodiscard]] bool holds(std::string const& guest, std::string const& key_sha256) const;
    [[nodiscard]] GuestNumber number_of(GuestVm const& guest);
    [[nodiscard]] Result<VmIdentity> guest_with(GuestNumber number) const;
    [[nodiscard]] GuestPlaneHooks hooks();
    [[nodiscard]] Result<VmIdentity> identify(GuestNumber guest);
    [[nodiscard]] Result<GuestAccess> access(VmIdentity const& vm) const;
    [[nodiscard]] bool permits_interop(verify::SessionPermit const& permit) const;
    [[nodiscard]] Result<Answer> ask(Request request);
    void send(Message const& message);
    void deliver(Verification& verification);
    void deliver_kept();
    [[nodiscard]] bool take(Message const& message);
    void apply(Push const& push);
    void end_lives(std::vector<GuestVm> const& ended);
    [[nodiscard]] Result<Answer> answer(Request const& request);
    void lost_front();

    Seams const seams_;
    Clock& clock_;
    std::string const instance_;
    http::TlsListen tls_;                     // without a place; its files are empty without TLS
    std::optional<std::string> fingerprint_;  // of its certificate
    std::vector<http::TlsListen> listening_;  // for guests on TCP; the thread that applies pushes
    std::unique_ptr<verify::Responder> responder_;
    mutable std::mutex mutex_;                    // guards the members below
    GuestVms pushed_;                             // the last, also while no vfmgrd is connected
    bool connected_ = false;                      // and has pushed
    std::deque<Verification> kept_;               // verdicts that no vfmgrd has taken so far
    std::map<std::string, GuestNumber> numbers_;  // of guests on TCP, by guest_key()
    GuestNumber last_number_ = cid_max;
    std::shared_mutex using_;  // held shared by who uses the dialogue, and alone by who replaces it
    std::unique_ptr<Dialogue> dialogue_;
    GuestPlane plane_;
    interop::InteropResponder interop_;
    http::Server server_;  // ends before what its handler uses
    RequestThreads delivering_{1};
};

}  // namespace vfmgr::guestd
