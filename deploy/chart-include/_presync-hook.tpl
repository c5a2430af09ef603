{{/*
The PreSync hook of an app. Put this file into the templates/ of its chart, and beside it a template with the one line

    {{ include "stagewright.presync-hook" . }}

The Application hands over hook.repo, hook.revision, hook.stage, hook.namespace and hook.path (empty for a repository of one app) as
Helm parameters; README "As a hook" has the values `presync`, which are the same for all apps. The Job runs in presync.namespace,
so the Application's project has to allow that namespace as a destination.
*/}}
{{- define "stagewright.presync-hook" -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ printf "tf-presync-%s" .Values.hook.namespace | trunc 63 | trimSuffix "-" }}
  namespace: {{ .Values.presync.namespace }}
  annotations:
    argocd.argoproj.io/hook: PreSync
    argocd.argoproj.io/hook-delete-policy: BeforeHookCreation
spec:
  backoffLimit: 0
  podReplacementPolicy: Failed
  template:
    spec:
      restartPolicy: Never
      serviceAccountName: {{ .Values.presync.account }}
      terminationGracePeriodSeconds: 960
      containers:
        - name: presync
          image: {{ .Values.presync.image }}
          command: [presync, apply]
          args:
            - {{ .Values.hook.repo | quote }}
            - {{ .Values.hook.revision | quote }}
            - {{ .Values.hook.stage | quote }}
            - {{ .Values.hook.namespace | quote }}
            - {{ .Values.hook.path | default "" | quote }}
          env:
            - { name: STAGEWRIGHT_STATE_URL, value: {{ .Values.presync.state | quote }} }
            {{- with .Values.presync.protect }}
            - { name: STAGEWRIGHT_PROTECT, value: {{ toJson . | quote }} }
            {{- end }}
            - name: STAGEWRIGHT_JOB_UID
              valueFrom: { fieldRef: { fieldPath: "metadata.labels['batch.kubernetes.io/controller-uid']" } }
            {{- with .Values.presync.env }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          envFrom:
            - secretRef: { name: {{ .Values.presync.secret }} }
{{- end }}
