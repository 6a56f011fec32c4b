// SPDX-License-Identifier: Apache-2.0
#include "service/guest/messages.hpp"

#include <algorithm>
#include <tuple>

#include "api/types/json_text.hpp"

namespace vfmgr {

// The target's token is written here alone: vfmgr-guestd calls the other host.
struct RemoteOfRun {
    std::string run;
    std::string host;
    std::uint16_t port = 0;
    std::string fingerprint;
    std::string token;
};

template <class F, Of<RemoteOfRun> V>
void fields(F& f, V& remote) {
    f.value("run", remote.run);
    f.value("host", remote.host);
    f.value("port", remote.port);
    f.value("fingerprint", remote.fingerprint);
    f.value("token", remote.token);
}

namespace verify {

template <class F, Of<SessionPermit> V>
void fields(F& f, V& permit) {
    f.value("attachment", permit.attachment);
    f.value("run", permit.run);
    f.value("nonce", permit.nonce);
    f.value("peer_address", permit.peer_address);
    f.value("mtu", permit.mtu);
    f.value("rdma", permit.rdma);
    f.maybe("dscp", permit.dscp);
    f.maybe("path", permit.path);
    f.value("profile", permit.profile);
    f.value("vf_tx_rate_mbps", permit.vf_tx_rate_mbps);
    f.value("vf_mac", permit.vf_mac);
    f.maybe("vf_guid", permit.vf_guid);
    f.maybe("pkey", permit.pkey);
    f.maybe("host_guid", permit.host_guid);
    f.value("host_address", permit.host_address);
    f.value("host_netdev", permit.host_netdev);
    f.value("vm", permit.vm);
}

template <class F, Of<ResponderLoad> V>
void fields(F& f, V& load) {
    f.value("sessions", load.sessions);
    f.value("sessions_max", load.sessions_max);
    f.value("streams", load.streams);
    f.value("waiting", load.waiting);
}

}  // namespace verify

template <class F, Of<RunTicket> V>
void fields(F& f, V& ticket) {
    f.value("attachment", ticket.attachment);
    f.value("run", ticket.run);
    f.value("nonce", ticket.nonce);
    f.value("profile", ticket.profile);
}

template <class F, Of<GuestPlaneLoad> V>
void fields(F& f, V& load) {
    f.value("requests_waiting", load.requests_waiting);
    f.value("long_polls", load.long_polls);
    f.value("refused", load.refused);
}

template <>
void Json<GuestAccess>::write(nlohmann::json& out, GuestAccess const& access) {
    std::vector<RemoteOfRun> remotes;
    for (auto const& [run, target] : access.remotes)
        remotes.push_back(
            {run, target.place.host, target.place.port, target.fingerprint, target.token});
    JsonWriter writer(out);
    writer.value("attachments", access.attachments);
    writer.value("permits", access.permits);
    writer.value("remotes", remotes);
    writer.value("interop", access.interop);
}

template <>
void Json<GuestAccess>::read(JsonReader& reader, GuestAccess& access) {
    std::vector<RemoteOfRun> remotes;
    reader.value("attachments", access.attachments);
    reader.value("permits", access.permits);
    reader.value("remotes", remotes);
    reader.value("interop", access.interop);
    for (auto& one : remotes)
        access.remotes.insert_or_assign(
            one.run, ResponderTarget{{one.host, one.port}, one.fingerprint, one.token});
}

template <class F, Of<TcpGuest> V>
void fields(F& f, V& guest) {
    f.value("interface", guest.interface);
    f.value("host", guest.host);
    f.value("address", guest.address);
    f.value("keys", guest.keys);
}

template <class F, Of<GuestVm> V>
void fields(F& f, V& one) {
    f.value("vm", one.vm);
    f.value("cid", one.cid);
    f.maybe("tcp", one.tcp);
    f.value("access", one.access);
}

namespace guestd {

template <class F, Of<Greeting> V>
void fields(F& f, V& greeting) {
    f.value("protocol", greeting.protocol);
    f.value("version", greeting.version);
    f.value("instance", greeting.instance);
    f.maybe("fingerprint", greeting.fingerprint);
}

template <class F, Of<Request> V>
void fields(F& f, V& request) {
    f.value("id", request.id);
    f.value("call", request.call);
    f.maybe("cid", request.cid);
    f.maybe("vm", request.vm);
    f.maybe("ticket", request.ticket);
    f.maybe("secret", request.secret);
    f.maybe("verification", request.verification);
    f.maybe("permit", request.permit);
    f.maybe("interop", request.interop);
    f.maybe("attachment", request.attachment);
}

// A request has what its call needs, and nothing else.
void check(JsonReader& reader, Request const& request) {
    auto const call = request.call;
    auto const required = [&](char const* key, bool given, std::initializer_list<Call> calls) {
        bool const needed = std::ranges::find(calls, call) != calls.end();
        if (given == needed) return;
        reader.complain(key, needed ? "is missing" : "is not a part of this call");
    };
    required("cid", request.cid.has_value(), {Call::identify, Call::confirm});
    required("vm", request.vm.has_value(),
             {Call::confirm, Call::topology, Call::start_run, Call::enrol});
    required("ticket", request.ticket.has_value(), {Call::start_run});
    required("secret", request.secret.has_value(), {Call::enrol});
    required("verification", request.verification.has_value(), {Call::verdict});
    required("permit", request.permit.has_value(), {Call::open_interop});
    required("interop", request.interop.has_value(), {Call::open_interop});
    required("attachment", request.attachment.has_value(),
             {Call::find_interop, Call::close_interop});
    if (request.id == 0) reader.complain("id", "must not be 0");
}

template <class F, Of<Load> V>
void fields(F& f, V& load) {
    f.value("plane", load.plane);
    f.value("responder", load.responder);
}

template <class F, Of<Answer> V>
void fields(F& f, V& answer) {
    f.value("id", answer.id);
    f.maybe("error", answer.error);
    f.maybe("vm", answer.vm);
    f.maybe("topology", answer.topology);
    f.maybe("key", answer.key);
    f.maybe("verification", answer.verification);
    f.maybe("load", answer.load);
    f.maybe("window", answer.window);
}

template <class F, Of<Push> V>
void fields(F& f, V& push) {
    f.value("all", push.all);
    f.value("current", push.current);
    f.value("vms", push.vms);
    f.value("gone", push.gone);
}

template <class F, Of<Waits> V>
void fields(F& f, V& waits) {
    f.value("vm", waits.vm);
}

namespace {

// The key of a message's object names its kind.
struct Line {
    std::tuple<std::optional<Greeting>, std::optional<Request>, std::optional<Answer>,
               std::optional<Push>, std::optional<Waits>>
        one_of;
};

template <class F, Of<Line> V>
void fields(F& f, V& line) {
    auto& [greeting, request, answer, push, waits] = line.one_of;
    f.maybe("greeting", greeting);
    f.maybe("request", request);
    f.maybe("answer", answer);
    f.maybe("push", push);
    f.maybe("waits", waits);
}

void check(JsonReader& reader, Line const& line) {
    int const kinds =
        std::apply([](auto const&... kind) { return (int{kind.has_value()} + ...); }, line.one_of);
    if (reader.clean() && kinds != 1) reader.complain("", "must be one message");
}

}  // namespace

std::string to_line(Message const& message) {
    Line line;
    std::visit([&line]<class T>(T const& one) { std::get<std::optional<T>>(line.one_of) = one; },
               message);
    return line_of(line);
}

Result<Message> parse_message(std::string_view text) {
    VFMGR_TRY(auto line, from_json_text<Line>(text));
    Message message;
    auto const take = [&message](auto& kind) {
        if (kind) message = std::move(*kind);
    };
    std::apply([&take](auto&... kind) { (take(kind), ...); }, line.one_of);
    return message;
}

}  // namespace guestd
}  // namespace vfmgr
