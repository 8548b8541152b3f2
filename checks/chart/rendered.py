"""Renders the chart with each of the value files beside this one, and says what must be among the objects.

The program `helm` is the first argument. No cluster is asked: objects are held against what the service needs and against
each other (ports, names, selectors, volumes).
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

HERE = Path(__file__).parent
CHART = HERE.parent.parent / "packages/helm/upscale"
HELM = sys.argv[1]

# Values that the schema or a template must refuse, and a word of the reason.
REFUSED = [
    (["--set", "baseUrl=api.example.org"], "baseUrl"),
    (["--set", "baseUrl=https://api.example.org/path"], "baseUrl"),
    (["--set", "storage=/var/results"], "storage"),
    (["--set", "results.delivery=cdn"], "delivery"),
    (["--set", "resultsUrl=https://a.example.org"], "resultsUrl"),
    (["--set", "console.enabled=true"], "console.url"),
    (["--set", "httpRoute.enabled=true"], "parentRefs"),
    (["--set", "worker.slots=0"], "slots"),
    (["--set", "worker.device=cuda:0"], "device"),
    (["--set", "networkPolicy.database.cidrs={db.internal}"], "cidrs"),
    (["--set", "stripe.packages={small}"], "packages"),
]


def template(*more):
    return subprocess.run(
        [HELM, "template", "rel", str(CHART), "--namespace", "pictures", *more],
        capture_output=True, text=True, check=False,
    )


class Rendered:
    """The objects of one value file."""

    def __init__(self, name):
        found = template("--values", str(HERE / f"{name}.yaml"))
        assert found.returncode == 0, f"{name}: {found.stderr}"
        self.objects = [one for one in yaml.safe_load_all(found.stdout) if one]

    def kinds(self):
        return sorted(one["kind"] for one in self.objects)

    def find(self, kind, name):
        found = [one for one in self.objects if one["kind"] == kind and one["metadata"]["name"] == name]
        assert len(found) == 1, f"{len(found)} of {kind} {name}"
        return found[0]

    def pod(self, component):
        return self.find("Deployment", f"rel-{component}")["spec"]["template"]["spec"]

    def container(self, component):
        return self.pod(component)["containers"][0]

    def env(self, component):
        pairs = [(one["name"], one["value"]) for one in self.container(component)["env"]]
        assert len(dict(pairs)) == len(pairs), f"a variable is set twice: {pairs}"
        return dict(pairs)


def check_every(one):
    """What holds whatever the values are."""
    labels = {"app.kubernetes.io/instance": "rel"}
    for component in ["api", "worker"]:
        deployment, pod = one.find("Deployment", f"rel-{component}"), one.pod(component)
        container, env = one.container(component), one.env(component)
        own = {**labels, "app.kubernetes.io/component": component}
        assert deployment["spec"]["selector"]["matchLabels"] == own
        assert own.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
        assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] and security["capabilities"] == {"drop": ["ALL"]}
        waits = int(env["UPSCALE_DRAIN"]) + int(env.get("UPSCALE_DRAIN_DELAY", 0))
        assert pod["terminationGracePeriodSeconds"] > waits + 5, "it would be killed while it drains"
        ports = {port["name"] for port in container["ports"]}
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"]:
            assert container[probe]["httpGet"]["port"] in ports, probe
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
        volumes = {volume["name"] for volume in pod["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes
        service = one.find("Service", "rel" if component == "api" else "rel-worker")
        assert service["spec"]["selector"] == own
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    # Result links: no address of a pod is ever told, and what is told reaches the API's listener.
    api = one.env("api")
    assert api["UPSCALE_BASE_URL"].startswith("https://api.example.org")
    assert "UPSCALE_RESULTS_LISTEN" not in api and api["UPSCALE_LISTEN"] == "0.0.0.0:8080"
    assert "UPSCALE_SECRET_KEY_FILE" not in one.env("worker")
    budget = one.find("PodDisruptionBudget", "rel-api")
    assert budget["spec"]["maxUnavailable"] == 1
    check_routes(one)


def check_routes(one):
    """Each host name that clients are told leads to the port where it is answered, where the chart routes at all."""
    routes = {}
    for ingress in [thing for thing in one.objects if thing["kind"] == "Ingress"]:
        for rule in ingress["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                backend = path["backend"]["service"]
                routes[(rule["host"], path["path"])] = (backend["name"], backend["port"]["name"])
    numbers = {port["port"]: port["name"] for port in one.find("Service", "rel")["spec"]["ports"]}
    for route in [thing for thing in one.objects if thing["kind"] == "HTTPRoute"]:
        for rule in route["spec"]["rules"]:
            for backend in rule["backendRefs"]:
                key = (route["spec"]["hostnames"][0], rule["matches"][0]["path"]["value"])
                routes[key] = (backend["name"], numbers[backend["port"]])
    if not routes:
        return
    api = one.env("api")
    told = {("api.example.org", "/"): ("rel", "http")}
    if "UPSCALE_RESULT_URL" in api:
        told[(api["UPSCALE_RESULT_URL"].removeprefix("https://"), "/r/")] = ("rel", "http")
    if "UPSCALE_CONSOLE_URL" in api:
        told[(api["UPSCALE_CONSOLE_URL"].removeprefix("https://"), "/")] = ("rel", "console")
    assert routes == told, f"{routes} instead of {told}"


def check_minimal(one):
    assert one.kinds() == [
        "Deployment", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service", "Service", "ServiceAccount",
    ], one.kinds()
    api = one.env("api")
    assert api["UPSCALE_RESULT_DELIVERY"] == "proxy" and "UPSCALE_RESULT_URL" not in api
    assert not {"UPSCALE_SECRET_KEY_FILE", "UPSCALE_TLS_CERT", "UPSCALE_CONSOLE_LISTEN"} & api.keys()
    assert one.find("Deployment", "rel-worker")["spec"]["replicas"] == 2
    assert one.env("worker")["UPSCALE_DEVICE"] == "auto"
    assert "supplementalGroups" not in one.pod("worker")["securityContext"]
    policy = one.find("NetworkPolicy", "rel-worker")["spec"]["egress"]
    assert len(policy) == 3 and {"podSelector": {}} in policy[1]["to"]
    public = policy[2]["to"][0]["ipBlock"]
    assert public["cidr"] == "0.0.0.0/0" and "169.254.0.0/16" in public["except"]


def check_ingress(one):
    ingress = one.find("Ingress", "rel")["spec"]
    assert ingress["ingressClassName"] == "nginx" and len(ingress["rules"]) == 3
    assert ingress["tls"][0]["secretName"] == "web-tls"
    api = one.env("api")
    assert api["UPSCALE_RESULT_URL"] == "https://files.example.org"
    assert api["UPSCALE_TRUSTED_PROXY"] == "10.244.0.0/16,fd00:10:244::/56"
    assert api["UPSCALE_PACKAGE"] == "small=100:9.90:eur,large=1000:79.00:eur"
    assert api["UPSCALE_MAIL_FROM"] == "Upscale <console@example.org>"
    assert api["UPSCALE_CONSOLE_LISTEN"].endswith(":8082")
    assert api["UPSCALE_SECRET_KEY_FILE"] == "/etc/upscale/secret/secret-key"
    volumes = {volume["name"]: volume for volume in one.pod("api")["volumes"]}
    assert volumes["secret-key"]["secret"] == {"secretName": "upscale-secret-key", "defaultMode": 0o440}
    assert "secret-key" not in {volume["name"] for volume in one.pod("worker")["volumes"]}


def check_gateway(one):
    routes = [thing for thing in one.objects if thing["kind"] == "HTTPRoute"]
    assert len(routes) == 2
    assert all(route["spec"]["parentRefs"] == [{"name": "public", "namespace": "gateways"}] for route in routes)
    api = one.env("api")
    assert api["UPSCALE_RESULT_DELIVERY"] == "redirect"
    assert api["UPSCALE_STORAGE_PUBLIC_URL"] == "https://s3.example.org"
    for component in ["api", "worker"]:
        env = one.env(component)
        assert (env["AWS_ENDPOINT_URL"], env["AWS_REGION"]) == ("https://s3.inside.example.org", "eu-1")


def check_private(one):
    egress = one.find("NetworkPolicy", "rel-worker")["spec"]["egress"]
    assert all("podSelector" not in to or to.get("namespaceSelector") == {} for rule in egress for to in rule["to"])
    rules = {
        to["ipBlock"]["cidr"]: {(port["protocol"], port["port"]) for port in rule["ports"]}
        for rule in egress for to in rule["to"] if "ipBlock" in to
    }
    assert rules["10.0.5.0/24"] == {("TCP", 5432), ("TCP", 6432)}
    assert rules["10.0.6.4/32"] == {("TCP", 9000)}
    assert rules["169.254.20.10/32"] == {("TCP", 53), ("UDP", 53)}
    assert rules["10.0.7.0/24"] == {("TCP", 4318)}
    assert rules["0.0.0.0/0"] == {("TCP", 443)} and rules["::/0"] == {("TCP", 443)}


def check_scaled(one):
    assert {"ScaledObject", "TriggerAuthentication", "ServiceMonitor"} <= set(one.kinds())
    assert "NetworkPolicy" not in one.kinds()
    worker, api = one.pod("worker"), one.pod("api")
    assert "replicas" not in one.find("Deployment", "rel-worker")["spec"]
    scaled = one.find("ScaledObject", "rel-worker")["spec"]
    assert scaled["triggers"][0]["metadata"]["targetQueryValue"] == "80"
    assert worker["nodeSelector"] == {"pool": "compute"} and worker["tolerations"][0]["key"] == "pool"
    assert worker["priorityClassName"] == "batch" and "podAntiAffinity" in worker["affinity"]
    assert api["topologySpreadConstraints"][0]["topologyKey"] == "topology.kubernetes.io/zone"
    assert "nodeSelector" not in api
    assert one.env("worker")["UPSCALE_MODEL_4X"] == "/models/4x.pth"
    assert one.env("api")["UPSCALE_OTLP_ENDPOINT"] == "http://collector:4318"
    assert {"name": "models", "mountPath": "/models", "readOnly": True} in one.container("worker")["volumeMounts"]
    for pod in [worker, api]:
        assert pod["serviceAccountName"] == "upscaler" and pod["imagePullSecrets"] == [{"name": "registry"}]
        assert pod["containers"][0]["image"] == "registry.example.org/upscale:1.2.3"
    account = one.find("ServiceAccount", "upscaler")
    assert "eks.amazonaws.com/role-arn" in account["metadata"]["annotations"]
    monitor = one.find("ServiceMonitor", "rel")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    for name in ["rel", "rel-worker"]:
        service = one.find("Service", name)
        assert wanted <= service["metadata"]["labels"].items()
        assert "metrics" in {port["name"] for port in service["spec"]["ports"]}
    assert one.env("api")["UPSCALE_TLS_CERT"] == "/etc/upscale/tls/tls.crt"
    assert one.container("api")["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
    assert api["terminationGracePeriodSeconds"] == 85
    assert one.find("Deployment", "rel-worker")["spec"]["template"]["metadata"]["annotations"]["example.org/team"]


def check_gpu(one):
    worker = one.container("worker")
    assert one.env("worker")["UPSCALE_DEVICE"] == "gpu:0" and "UPSCALE_DEVICE" not in one.env("api")
    assert worker["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert one.pod("worker")["securityContext"]["supplementalGroups"] == [105]


def check_notes():
    """What the installer reads names what is missing. `helm template` leaves the notes out, so they are rendered as an
    object of a copy of the chart."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "upscale"
        shutil.copytree(CHART, copy)
        notes = copy / "templates/NOTES.txt"
        text = '{{ define "notes" }}' + notes.read_text() + '{{ end }}kind: Notes\ntext: {{ include "notes" . | toJson }}\n'
        (copy / "templates/notes.yaml").write_text(text)
        notes.unlink()
        flags = ["--values", str(HERE / "minimal.yaml"), "--show-only", "templates/notes.yaml"]
        found = subprocess.run(
            [HELM, "template", "rel", str(copy), "--namespace", "pictures", *flags],
            capture_output=True, text=True, check=True,
        )
    said = yaml.safe_load(found.stdout)["text"]
    for what in ["https://api.example.org/r/", "cannot be reached", "trustedProxies is empty", "secretKey.secretName"]:
        assert what in said, f"the notes do not say: {what}\n{said}"


def main():
    checks = {
        "minimal": check_minimal, "ingress": check_ingress, "gateway": check_gateway,
        "private": check_private, "scaled": check_scaled, "gpu": check_gpu,
    }
    assert {path.stem for path in HERE.glob("*.yaml")} == checks.keys()
    for name, check in checks.items():
        one = Rendered(name)
        check_every(one)
        check(one)
    for flags, word in REFUSED:
        refused = template(*flags)
        assert refused.returncode != 0 and word in refused.stderr, f"{flags}: {refused.stderr or 'taken'}"
    check_notes()
    print(f"the chart: {len(checks)} value files render what they should, {len(REFUSED)} wrong values are refused")


main()
