{{- define "upscale.labels" -}}
app.kubernetes.io/name: upscale
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "upscale.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "upscale.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default .Release.Name }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "upscale.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "upscale.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "upscale.host" -}}
{{ (urlParse .).host | splitList ":" | first }}
{{- end }}

{{- /* The pods' own end: the balancer notices, requests and images end, and a little more. */}}
{{- define "upscale.gracePeriod" -}}
{{ add .Values.drain.delaySeconds .Values.drain.seconds 15 }}
{{- end }}

{{- define "upscale.settings" -}}
- name: UPSCALE_STORAGE
  value: {{ .Values.storage | quote }}
- name: AWS_REGION
  value: {{ .Values.s3.region | quote }}
{{- with .Values.s3.endpoint }}
- name: AWS_ENDPOINT_URL
  value: {{ . | quote }}
{{- end }}
- name: UPSCALE_METRICS_LISTEN
  value: 0.0.0.0:9090
- name: UPSCALE_DRAIN
  value: {{ .Values.drain.seconds | quote }}
- name: UPSCALE_LOG_FORMAT
  value: json
{{- end }}

{{- /* What both kinds of pods may have of their own. Called with the values of one kind. */}}
{{- define "upscale.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .topologySpreadConstraints }}
topologySpreadConstraints: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}
