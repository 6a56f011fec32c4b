// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/serve/serve.hpp"

#include <fmt/format.h>
#include <poll.h>

#include "api/types/json.hpp"
#include "guest-tools/interop/cm_stream.hpp"
#include "guest-tools/serve/check_neighbour.hpp"
#include "guest-tools/serve/local_end.hpp"

namespace vfmgr::serve {
namespace {

void wait_for(int stop) {
    pollfd stopped{stop, POLLIN, 0};
    while (::poll(&stopped, 1, -1) < 0) continue;  // EINTR
}

Result<Served> find_served(IpAddress const& address, std::uint16_t echo_port) {
    VFMGR_TRY(auto const end, find_local_end(address));
    VFMGR_TRY(auto const rdma_device, find_rdma_device(end));
    Served served;
    served.ifname = end.netdev.name;
    served.info = {VFMGR_VERSION, address, echo_port, end.netdev.mac, end.netdev.mtu, rdma_device};
    return served;
}

}  // namespace

Result<void> serve(ServeOptions const& options, int stop,
                   std::function<void(ServeReady const&)> const& ready) {
    VFMGR_TRY(auto const address, IpAddress::parse(options.address));
    HostPort const listen{options.listen.empty() ? to_string(address) : options.listen,
                          options.port};
    verify::ResponderLimits limits;
    limits.sessions_max = options.sessions;
    VFMGR_TRY(auto served, find_served(address, limits.echo_port));
    VFMGR_TRY(auto const credentials,
              credentials_in(options.state_folder, options.token_file, listen.host));
    served.token = credentials.token;
    VFMGR_TRY(auto const responder,
              verify::Responder::start(limits, check_neighbour,
                                       interop::cm_streams(options.rping_program)));
    ResponderServer answering(served, *responder);
    http::Server server{http::Limits{}};
    VFMGR_CHECK(server.listen(http::TlsListen{listen.host, listen.port,
                                              credentials.certificate_file, credentials.key_file},
                              answering.handler()));
    server.start();
    ready({served.info, served.ifname, listen, credentials});
    wait_for(stop);
    server.stop();
    return {};
}

std::string ready_text(ServeReady const& ready) {
    return fmt::format("serving {} on {} ({}), listening at {}, fingerprint {}, token in {}",
                       to_string(ready.info.address), ready.ifname, ready.info.rdma_device,
                       to_string(ready.listen), ready.credentials.fingerprint,
                       ready.credentials.token_file);
}

std::string ready_json(ServeReady const& ready) {
    nlohmann::json const out{{"address", to_string(ready.info.address)},
                             {"ifname", ready.ifname},
                             {"rdma_device", ready.info.rdma_device},
                             {"echo_port", ready.info.echo_port},
                             {"host", ready.listen.host},
                             {"port", ready.listen.port},
                             {"fingerprint", ready.credentials.fingerprint},
                             {"token_file", ready.credentials.token_file}};
    return to_json_text(out);
}

}  // namespace vfmgr::serve
