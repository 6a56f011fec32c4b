// SPDX-License-Identifier: Apache-2.0
// Guests on TCP: a listener on the host's address of each network that has one, in which the host's
// packet filter lets only these guests. Who calls is known by its address, then by its key.
#include <fmt/format.h>
#include <net/if.h>

#include <algorithm>

#include "api/http/places.hpp"
#include "service/guest/serve.hpp"
#include "vfmgr/proof/digest.hpp"

namespace vfmgr::guestd {
namespace {

constexpr auto enrolment_path = "/guest/v1/enrolment";

// Not that its key is refused: the attachment may be unknown for a moment alone, while its host's
// interface can't be read.
Error stranger(std::string const& address) {
    return {Problem::not_found,
            fmt::format("no VF of this host with guest_plane tcp has the address {}", address),
            "send from the VF's own address, over the VF"};
}

Error no_key() {
    return {Problem::unauthorized, "the request has no key of this attachment",
            "enrol again with a new token: vfctl attachment enrolment ATTACHMENT on the host"};
}

}  // namespace

void Service::make_certificate() {
    if (seams_.tls_folder.empty()) return;
    tls_.certificate_file = seams_.tls_folder + "/guests.crt";
    tls_.key_file = seams_.tls_folder + "/guests.key";
    auto made = http::make_self_signed(tls_.certificate_file, tls_.key_file, {"vfmgr-guestd"});
    auto const fingerprint =
        made.and_then([&] { return http::certificate_fingerprint(tls_.certificate_file); });
    if (fingerprint) fingerprint_ = *fingerprint;
    if (!fingerprint) seams_.report("no guest can use TCP: " + fingerprint.error().detail);
}

void Service::listen_for_guests() {
    if (!fingerprint_) return;
    std::vector<http::TlsListen> needed;
    {
        std::lock_guard const lock(mutex_);
        for (auto const& [uuid, guest] : pushed_.vms) {
            if (!guest.tcp) continue;
            auto where = tls_;
            where.address = to_string(guest.tcp->host);
            where.port = seams_.tls_port;
            where.interface = guest.tcp->interface;
            where.ifindex = static_cast<int>(::if_nametoindex(where.interface.c_str()));
            if (std::ranges::find(needed, where) == needed.end()) needed.push_back(where);
        }
        std::erase_if(numbers_, [&](auto const& one) { return !pushed_.vms.contains(one.first); });
    }
    std::erase_if(listening_, [&](http::TlsListen const& where) {
        bool const over = std::ranges::find(needed, where) == needed.end();
        if (over) server_.unlisten(where);
        return over;
    });
    for (auto const& where : needed) {
        if (std::ranges::find(listening_, where) != listening_.end()) continue;
        auto const listens = server_.listen(where, [this, where](auto request, auto respond) {
            accept_on_tcp(where, std::move(request), std::move(respond));
        });
        if (listens)
            listening_.push_back(where);
        else
            seams_.report("guests can't connect: " + detail_with_causes(listens.error()));
    }
    // A key that was replaced no longer holds a connection open.
    server_.cut(http::lapsed);
}

// On the io thread.
void Service::accept_on_tcp(http::TlsListen const& where, http::Request request,
                            http::Respond respond) {
    auto const& from = std::get<http::TcpPeer>(request.peer).address;
    std::optional<GuestVm> guest;
    {
        std::lock_guard const lock(mutex_);
        for (auto const& [uuid, one] : pushed_.vms)
            if (one.tcp && one.tcp->interface == where.interface &&
                to_string(one.tcp->host) == where.address && to_string(one.tcp->address) == from)
                guest = one;
    }
    auto const refuse = [&](Error const& error) {
        respond(http::problem_response(error, request));
    };
    if (!guest) return refuse(stranger(from));
    bool const enrols = request.method == "POST" && request.path == enrolment_path;
    if (!enrols)
        if (auto const known = know(guest->vm.uuid, request); !known) return refuse(known.error());
    plane_.take(number_of(*guest), std::move(request), std::move(respond));
}

Result<void> Service::know(std::string const& guest, http::Request const& request) {
    auto const header = request.headers.find("authorization");
    auto const key =
        header == request.headers.end() ? std::string_view() : http::bearer_token(header->second);
    if (key.empty()) return fail(no_key());
    auto const sha256 = verify::digest_hex(std::string(key));
    if (!holds(guest, sha256)) return fail(no_key());
    return http::make_known(request,
                            {guest, [this, guest, sha256] { return holds(guest, sha256); }});
}

bool Service::holds(std::string const& guest, std::string const& key_sha256) const {
    std::lock_guard const lock(mutex_);
    auto const found = pushed_.vms.find(guest);
    return found != pushed_.vms.end() && found->second.tcp &&
           opens(found->second.tcp->keys, key_sha256, clock_.now());
}

GuestNumber Service::number_of(GuestVm const& guest) {
    if (!guest.tcp) return guest.cid;
    std::lock_guard const lock(mutex_);
    auto const [at, made] = numbers_.try_emplace(guest.vm.uuid, last_number_ + 1);
    if (made) ++last_number_;
    return at->second;
}

Result<VmIdentity> Service::guest_with(GuestNumber number) const {
    std::lock_guard const lock(mutex_);
    auto const named =
        std::ranges::find_if(numbers_, [number](auto const& one) { return one.second == number; });
    if (connected_ && named != numbers_.end())
        if (auto const found = pushed_.vms.find(named->first); found != pushed_.vms.end())
            return found->second.vm;
    if (!connected_)
        return fail(Problem::unavailable, "vfmgrd is restarting", "try again in a few seconds");
    return fail(Problem::not_found, "this attachment has ended",
                "ask the host's admin to attach the VF again");
}

}  // namespace vfmgr::guestd
