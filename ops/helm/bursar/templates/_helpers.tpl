{{- define "bursar.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "bursar.labels" -}}
app.kubernetes.io/name: bursar
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "bursar.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Only the database's address for the service's role, never the owner's. */}}
{{- define "bursar.database" -}}
- name: DATABASE_URL
  valueFrom: { secretKeyRef: { name: {{ .Values.secrets.database }}, key: url } }
{{- end }}

{{- define "bursar.container-security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* What the pods of API and worker share. Called with root, component and its values. */}}
{{- define "bursar.pod" -}}
{{- $root := .root -}}
{{- $values := $root.Values -}}
metadata:
  labels:
    {{- include "bursar.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  # The delay, the timeout, and some: then Kubernetes kills what is left.
  terminationGracePeriodSeconds: {{ add (div (add (int $values.drainDelayMs) (int $values.shutdownTimeoutMs)) 1000) 10 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 1000
    fsGroup: 1000
    seccompProfile: { type: RuntimeDefault }
  {{- with $values.imagePullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  # A lost machine or zone takes as few processes with it as the cluster allows.
  topologySpreadConstraints:
    {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          app.kubernetes.io/name: bursar
          app.kubernetes.io/instance: {{ $root.Release.Name }}
          app.kubernetes.io/component: {{ $.component }}
    {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations: {{ toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: bursar
      image: {{ include "bursar.image" $root }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      securityContext: {{ include "bursar.container-security" $root | nindent 8 }}
      env:
        {{- include "bursar.database" $root | nindent 8 }}
        - { name: BURSAR_MODE, value: {{ $values.mode }} }
        - { name: BURSAR_BASE_URL, value: {{ $values.baseUrl | quote }} }
        - { name: BURSAR_MASTER_KEY_FILE, value: /run/secrets/bursar/master-key }
        - { name: BURSAR_WORKER, value: {{ eq .component "worker" | quote }} }
        # The stop includes the delay.
        - { name: BURSAR_SHUTDOWN_TIMEOUT_MS, value: {{ add (int $values.drainDelayMs) (int $values.shutdownTimeoutMs) | quote }} }
        {{- if .own.networksSecret }}
        - { name: BURSAR_NETWORKS_FILE, value: /run/secrets/networks/networks.json }
        {{- end }}
        {{- range $name, $value := $values.settings }}
        - { name: {{ $name }}, value: {{ (and (kindIs "float64" $value) (eq $value (floor $value))) | ternary (int64 $value) $value | toString | quote }} }
        {{- end }}
        {{- .env | nindent 8 }}
      ports: {{ .ports | nindent 8 }}
      {{- .probes | nindent 6 }}
      resources: {{ toYaml .own.resources | nindent 8 }}
      volumeMounts:
        - { name: master-key, mountPath: /run/secrets/bursar, readOnly: true }
        {{- if .own.networksSecret }}
        - { name: networks, mountPath: /run/secrets/networks, readOnly: true }
        {{- end }}
        {{- if $values.filesSecret }}
        - { name: files, mountPath: /run/secrets/files, readOnly: true }
        {{- end }}
        - { name: data, mountPath: /data }
        - { name: tmp, mountPath: /tmp }
  volumes:
    - name: master-key
      secret: { secretName: {{ $values.secrets.masterKey }}, defaultMode: 0440, items: [{ key: master-key, path: master-key }] }
    {{- with .own.networksSecret }}
    - name: networks
      secret: { secretName: {{ . }}, defaultMode: 0440 }
    {{- end }}
    {{- with $values.filesSecret }}
    - name: files
      secret: { secretName: {{ . }}, defaultMode: 0440 }
    {{- end }}
    # In a sandbox, the demo's credentials; otherwise nothing.
    - name: data
      emptyDir: { sizeLimit: 16Mi }
    - name: tmp
      emptyDir: { sizeLimit: 64Mi }
{{- end }}
